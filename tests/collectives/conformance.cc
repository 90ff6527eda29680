#include "tests/collectives/conformance.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>

namespace hyperrun::conformance {
namespace {

// The element i of a tensor of rank r in round `salt`: any sign and size, exact in bfloat16 if asked. Every
// fourth is 2^24 or -2^24. These cancel, and the others are rounded away beside them, so a sum in another
// order differs.
float value(int r, std::int64_t i, int salt, DType dtype) {
  auto h = static_cast<std::uint32_t>(r * 7919 + i * 2654435761LL + salt * 104729);
  h ^= h >> 15;
  h *= 2246822519U;
  h ^= h >> 13;
  if (h >> 30 == 0) return (h & 1) == 0 ? 0x1p24F : -0x1p24F;
  const float f = (static_cast<float>(h % 20011) - 10005.0F) / 1024.0F;
  return dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(f)) : f;
}

void put(std::byte* at, std::int64_t i, float f, DType dtype) {
  if (dtype == DType::kBF16) {
    const std::uint16_t b = f32_to_bf16(f);
    std::memcpy(at + 2 * i, &b, 2);
  } else {
    std::memcpy(at + 4 * i, &f, 4);  // kI32: only the bits matter
  }
}

float get(const std::byte* at, std::int64_t i, DType dtype) {
  if (dtype == DType::kBF16) {
    std::uint16_t b = 0;
    std::memcpy(&b, at + 2 * i, 2);
    return bf16_to_f32(b);
  }
  float f = 0;
  std::memcpy(&f, at + 4 * i, 4);
  return f;
}

void fill(std::byte* at, std::int64_t n, int r, int salt, DType dtype) {
  for (std::int64_t i = 0; i < n; ++i) put(at, i, value(r, i, salt, dtype), dtype);
}

// The bound of the error. p float32 additions round p - 1 times, each by at most 2^-24 of a partial sum. A
// bfloat16 result rounds by 2^-8 of it, twice between hosts of several ranks.
double tolerance(double magnitude, int p, DType dtype) {
  const double f32 = magnitude * p * std::ldexp(1.0, -24);
  return dtype == DType::kBF16 ? f32 + 2 * magnitude * std::ldexp(1.0, -8) : f32;
}

void expect_reduced(float got, const std::vector<float>& terms, ReduceOp op, DType dtype, std::int64_t i) {
  double sum = 0, magnitude = 0, most = terms[0];
  for (const float t : terms) {
    sum += t;
    magnitude += std::fabs(t);
    most = std::max<double>(most, t);
  }
  if (op == ReduceOp::kMax) {
    ASSERT_EQ(got, most) << "element " << i;
  } else {
    ASSERT_NEAR(got, sum, tolerance(magnitude, static_cast<int>(terms.size()), dtype)) << "element " << i;
  }
}

// The sum in the order of the group, in float32, rounded once: one host promises it to the bit.
float in_order(const std::vector<float>& terms, ReduceOp op, DType dtype) {
  float a = terms[0];
  for (std::size_t k = 1; k < terms.size(); ++k)
    a = op == ReduceOp::kSum ? a + terms[k] : std::max(a, terms[k]);
  return dtype == DType::kBF16 ? bf16_to_f32(f32_to_bf16(a)) : a;
}

// Runs a request to its end; it stays valid as long as the group says.
const Request* run(Rank& rank, Group& group, const CollectiveArgs& args) {
  Request* r = group.start(args);
  rank.world.wait(*r);
  EXPECT_TRUE(r->done());
  EXPECT_EQ(r->wire_bytes, wire_bytes(args, r->algorithm, group.place()).value)
      << name(r->algorithm) << " " << name(args.kind);
  return r;
}

// Compares every rank's copy of n words, word by word: all members hold the same bits.
void expect_same_everywhere(Rank& rank, Group& group, const std::byte* mine, std::int64_t bytes) {
  const std::int64_t words = bytes / 4;
  if (words == 0) return;
  std::byte* all = rank.allocate(group.size() * words * 4);
  run(rank, group,
      {.kind = Collective::kAllGather, .dtype = DType::kI32, .in = mine, .out = all, .inner = words});
  for (int k = 0; k < group.size(); ++k) {
    ASSERT_EQ(std::memcmp(all + k * words * 4, mine, static_cast<std::size_t>(words) * 4), 0)
        << "member " << k;
  }
}

std::vector<float> terms_at(const Group& g, std::int64_t i, int salt, DType dtype) {
  std::vector<float> terms;
  for (const int r : g.ranks()) terms.push_back(value(r, i, salt, dtype));
  return terms;
}

// The bits that world.h promises of a sum; nothing if it promises only that all get the same.
std::optional<float> promised(Rank& rank, const Request& r, const std::vector<float>& terms) {
  const auto [dtype, op] = std::pair(r.args.dtype, r.args.op);
  const Topology& topology = rank.world.topology();
  if (topology.hosts() == 1 || r.algorithm == Algorithm::kPairwise) return in_order(terms, op, dtype);
  if (r.algorithm != Algorithm::kHierarchical || topology.hosts() > 2) return std::nullopt;
  std::array<std::vector<float>, 2> hosts;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const auto member = static_cast<std::size_t>(r.group->ranks()[k]);
    hosts[static_cast<std::size_t>(topology.host_of[member])].push_back(terms[k]);
  }
  return in_order({in_order(hosts[0], op, dtype), in_order(hosts[1], op, dtype)}, op, dtype);
}

void expect_result(Rank& rank, const Request& r, float got, const std::vector<float>& terms, std::int64_t i) {
  ASSERT_NO_FATAL_FAILURE(expect_reduced(got, terms, r.args.op, r.args.dtype, i));
  if (const auto expected = promised(rank, r, terms)) {
    ASSERT_EQ(got, *expected) << name(r.algorithm) << ", element " << i;
  }
}

void all_reduce(Rank& rank, Group& g, std::int64_t n, DType dtype, ReduceOp op, bool in_place, int salt) {
  std::byte* in = rank.allocate(n * size_of(dtype));
  std::byte* out = in_place ? in : rank.allocate(n * size_of(dtype));
  fill(in, n, rank.world.rank(), salt, dtype);
  const Request* r = run(
      rank, g, {.kind = Collective::kAllReduce, .dtype = dtype, .op = op, .in = in, .out = out, .inner = n});
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_NO_FATAL_FAILURE(expect_result(rank, *r, get(out, i, dtype), terms_at(g, i, salt, dtype), i));
    if (!in_place) {
      ASSERT_EQ(get(in, i, dtype), value(rank.world.rank(), i, salt, dtype));
    }
  }
  expect_same_everywhere(rank, g, out, n * size_of(dtype));
}

void reduce_scatter(Rank& rank, Group& g, std::int64_t outer, std::int64_t inner, DType dtype, int salt) {
  const int p = g.size();
  std::byte* in = rank.allocate(outer * p * inner * size_of(dtype));
  std::byte* out = rank.allocate(outer * inner * size_of(dtype));
  fill(in, outer * p * inner, rank.world.rank(), salt, dtype);
  const Request* r = run(rank, g,
                         {.kind = Collective::kReduceScatter,
                          .dtype = dtype,
                          .in = in,
                          .out = out,
                          .outer = outer,
                          .inner = inner});
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t at = (o * p + g.index()) * inner + i;
      ASSERT_NO_FATAL_FAILURE(
          expect_result(rank, *r, get(out, o * inner + i, dtype), terms_at(g, at, salt, dtype), at));
    }
  }
}

void all_gather(Rank& rank, Group& g, std::int64_t outer, std::int64_t inner, DType dtype, bool in_place) {
  const int p = g.size();
  std::byte* out = rank.allocate(outer * p * inner * size_of(dtype));
  std::byte* in =
      in_place ? out + g.index() * inner * size_of(dtype) : rank.allocate(outer * inner * size_of(dtype));
  fill(in, outer * inner, rank.world.rank(), 3, dtype);
  run(rank, g,
      {.kind = Collective::kAllGather, .dtype = dtype, .in = in, .out = out, .outer = outer, .inner = inner});
  for (std::int64_t o = 0; o < outer; ++o) {
    for (int k = 0; k < p; ++k) {
      for (std::int64_t i = 0; i < inner; ++i) {
        ASSERT_EQ(get(out, (o * p + k) * inner + i, dtype),
                  value(g.ranks()[static_cast<std::size_t>(k)], o * inner + i, 3, dtype));
      }
    }
  }
}

// Checks that element (a, x, b, y, c) of the whole tensor is at its place on its rank, before and after.
void all_to_all(Rank& rank, Group& g, AllToAllShape s, DType dtype) {
  const int p = g.size();
  s.x *= p;
  s.y *= p;
  const std::int64_t n = s.a * s.x * s.b * s.y * s.c / p;
  std::byte* in = rank.allocate(n * size_of(dtype));
  std::byte* out = rank.allocate(n * size_of(dtype));
  auto whole_index = [&](std::int64_t local, bool x_split, int member) {
    const std::int64_t x = x_split ? s.x / p : s.x, y = x_split ? s.y : s.y / p;
    const std::int64_t c = local % s.c, iy = local / s.c % y, b = local / (s.c * y) % s.b;
    const std::int64_t ix = local / (s.c * y * s.b) % x, a = local / (s.c * y * s.b * x);
    const std::int64_t gx = x_split ? ix + member * x : ix, gy = x_split ? iy : iy + member * y;
    return (((a * s.x + gx) * s.b + b) * s.y + gy) * s.c + c;
  };
  for (std::int64_t i = 0; i < n; ++i) {
    put(in, i, value(99, whole_index(i, s.gather_x, g.index()), 5, dtype), dtype);
  }
  run(rank, g, {.kind = Collective::kAllToAll, .dtype = dtype, .in = in, .out = out, .all_to_all = s});
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(get(out, i, dtype), value(99, whole_index(i, !s.gather_x, g.index()), 5, dtype)) << i;
  }
}

// The collective, whole and in pieces of each run, gives the same bits and touches no other byte.
void in_pieces(Rank& rank, Group& g, CollectiveArgs whole, std::int64_t runs, std::int64_t pieces) {
  const int p = g.size();
  const std::int64_t element = size_of(whole.dtype);
  const bool exchanges = whole.kind == Collective::kAllToAll;
  std::int64_t& own = exchanges ? whole.all_to_all.x : whole.inner;
  const std::int64_t members = exchanges ? p : 1, pitch = own / members / runs;
  const std::int64_t in_bytes = in_elements(whole, p) * element, out_bytes = out_elements(whole, p) * element;
  std::byte* in = rank.allocate(in_bytes);
  std::array<std::byte*, 2> outs{rank.allocate(out_bytes), rank.allocate(out_bytes)};
  fill(in, in_bytes / element, rank.world.rank(), 9, whole.dtype);
  std::memset(outs[1], 0, static_cast<std::size_t>(out_bytes));
  whole.in = in, whole.out = outs[0];
  run(rank, g, whole);
  const AllToAllShape& s = whole.all_to_all;
  // Bytes of a position, and of the data of one member between two of its own.
  const auto position = [&](bool of_input) {
    return exchanges ? s.b * s.c * (of_input == s.gather_x ? s.y : s.y / p) * element : element;
  };
  CollectiveArgs piece = whole;
  piece.runs = runs, piece.pitch = pitch;
  for (std::int64_t k = pieces; k-- > 0;) {
    const std::int64_t from = pitch * k / pieces, to = pitch * (k + 1) / pieces;
    (exchanges ? piece.all_to_all.x : piece.inner) = (to - from) * runs * members;
    piece.in = in + from * position(true);
    piece.out = outs[1] + from * position(false);
    run(rank, g, piece);
  }
  ASSERT_EQ(std::memcmp(outs[0], outs[1], static_cast<std::size_t>(out_bytes)), 0)
      << name(whole.kind) << " of " << own << " in " << runs << " runs";
}

void pieces_of_all_kinds(Rank& rank, DType dtype) {
  for (const std::int64_t pitch : {3, 5, 211})
    for (const std::int64_t runs : {1, 3})
      for (const std::int64_t outer : {1, 2}) {
        for (const Collective kind : {Collective::kAllGather, Collective::kReduceScatter})
          ASSERT_NO_FATAL_FAILURE(
              in_pieces(rank, rank.everyone(),
                        {.kind = kind, .dtype = dtype, .outer = outer, .inner = runs * pitch}, runs, 3));
        for (const bool gather_x : {true, false}) {
          const int p = rank.everyone().size();
          const AllToAllShape s{outer, p * runs * pitch, 2, p * std::int64_t{2}, 3, gather_x};
          ASSERT_NO_FATAL_FAILURE(in_pieces(rank, rank.reversed(),
                                            {.kind = Collective::kAllToAll, .dtype = dtype, .all_to_all = s},
                                            runs, 3));
        }
      }
}

std::int64_t v_count(int from, int to, int scale) { return (from * 3 + to * 5) % 4 * scale; }

// With `apart` blocks have gaps before them, and lie in another order: the first peer's last.
std::vector<std::int64_t> starts(const std::vector<std::int64_t>& counts, bool apart) {
  constexpr std::int64_t kGap = 5;
  std::vector<std::int64_t> list(counts.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t k = apart ? counts.size() - 1 - i : i;
    if (apart) at += kGap;
    list[k] = at;
    at += counts[k];
  }
  return list;
}

void all_to_all_v(Rank& rank, Group& g, int scale, bool apart) {
  const int p = g.size(), me = g.index();
  const auto counts_of = [&](int from) {
    std::vector<std::int64_t> counts;
    for (int k = 0; k < p; ++k) counts.push_back(v_count(from, k, scale));
    return counts;
  };
  const std::vector<std::int64_t> send = counts_of(me), send_at = starts(send, apart);
  std::vector<std::int64_t> recv;
  for (int k = 0; k < p; ++k) recv.push_back(v_count(k, me, scale));
  const std::vector<std::int64_t> recv_at = starts(recv, apart);
  const auto room = [&](const auto& at, const auto& counts) {
    std::int64_t end = 0;
    for (std::size_t k = 0; k < at.size(); ++k) end = std::max(end, at[k] + counts[k]);
    return end;
  };
  const std::int64_t in_n = room(send_at, send), out_n = room(recv_at, recv);
  std::byte* in = rank.allocate(in_n * 4);
  std::byte* out = rank.allocate(out_n * 4);
  fill(in, in_n, me, 6, DType::kF32);
  constexpr float kUntouched = -7;
  for (std::int64_t i = 0; i < out_n; ++i) put(out, i, kUntouched, DType::kF32);
  CollectiveArgs args{
      .kind = Collective::kAllToAllV, .in = in, .out = out, .send_counts = send, .recv_counts = recv};
  if (apart) args.send_starts = send_at, args.recv_starts = recv_at;
  run(rank, g, args);
  std::vector<bool> taken(static_cast<std::size_t>(out_n), false);
  for (int k = 0; k < p; ++k) {
    const std::int64_t from = starts(counts_of(k), apart)[static_cast<std::size_t>(me)];
    for (std::int64_t i = 0; i < v_count(k, me, scale); ++i) {
      const std::int64_t at = recv_at[static_cast<std::size_t>(k)] + i;
      ASSERT_EQ(get(out, at, DType::kF32), value(k, from + i, 6, DType::kF32));
      taken[static_cast<std::size_t>(at)] = true;
    }
  }
  for (std::int64_t i = 0; i < out_n; ++i)
    if (!taken[static_cast<std::size_t>(i)]) {
      ASSERT_EQ(get(out, i, DType::kF32), kUntouched) << "between blocks";
    }
}

void shift(Rank& rank, Group& g, std::int64_t outer, std::int64_t inner, DType dtype) {
  const std::int64_t n = outer * inner;
  const auto p = static_cast<std::size_t>(g.size()), me = static_cast<std::size_t>(g.index());
  std::byte* in = rank.allocate(n * size_of(dtype));
  std::byte* out = rank.allocate(n * size_of(dtype));
  fill(in, n, rank.world.rank(), 8, dtype);
  const Request* r =
      run(rank, g,
          {.kind = Collective::kShift, .dtype = dtype, .in = in, .out = out, .outer = outer, .inner = inner});
  ASSERT_EQ(r->wire_bytes, p > 1 ? n * size_of(dtype) : 0);
  const int before = g.ranks()[(me + p - 1) % p];
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(get(out, i, dtype), value(before, i, 8, dtype)) << i;
}

void broadcast(Rank& rank, Group& g, std::int64_t n, int root, bool in_place) {
  std::byte* out = rank.allocate(n * 4);
  std::byte* in = nullptr;
  if (g.index() == root) {
    in = in_place ? out : rank.allocate(n * 4);
    fill(in, n, root, 7, DType::kF32);
  }
  run(rank, g, {.kind = Collective::kBroadcast, .in = in, .out = out, .inner = n, .peer = root});
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(get(out, i, DType::kF32), value(root, i, 7, DType::kF32));
}

// Sizes around lines, slices, pieces and thresholds; few of them divide evenly. Some just fit an offer's line
// (40 bytes), and some just do not.
const std::vector<std::int64_t> kSizes = {0,  1,   2,    10,   11,   15,   17,   20,
                                          21, 100, 1023, 1024, 1025, 5003, 40001};

void all_reduce_sizes(Rank& rank, DType dtype, ReduceOp op) {
  for (const std::int64_t n : kSizes) {
    if (dtype == DType::kBF16 && n % 2 == 1 && n > 1025) continue;
    ASSERT_NO_FATAL_FAILURE(all_reduce(rank, rank.everyone(), n, dtype, op, true, 1));
    ASSERT_NO_FATAL_FAILURE(all_reduce(rank, rank.reversed(), n, dtype, op, false, 2));
  }
}

void reduce_scatter_shapes(Rank& rank, DType dtype) {
  for (const std::int64_t inner : {1, 7, 64, 1000, 9001}) {
    ASSERT_NO_FATAL_FAILURE(reduce_scatter(rank, rank.everyone(), 1, inner, dtype, 1));
  }
  ASSERT_NO_FATAL_FAILURE(reduce_scatter(rank, rank.reversed(), 5, 33, dtype, 2));
  ASSERT_NO_FATAL_FAILURE(reduce_scatter(rank, rank.everyone(), 129, 40, dtype, 3));
}

void all_gather_shapes(Rank& rank, DType dtype) {
  for (const std::int64_t inner : {1, 7, 64, 1000, 9001}) {
    ASSERT_NO_FATAL_FAILURE(all_gather(rank, rank.everyone(), 1, inner, dtype, false));
    ASSERT_NO_FATAL_FAILURE(all_gather(rank, rank.everyone(), 1, inner, dtype, true));
  }
  ASSERT_NO_FATAL_FAILURE(all_gather(rank, rank.reversed(), 5, 33, dtype, false));
  ASSERT_NO_FATAL_FAILURE(all_gather(rank, rank.everyone(), 129, 40, dtype, false));
}

void all_to_all_shapes(Rank& rank, DType dtype) {
  for (const bool gather_x : {true, false}) {
    for (const AllToAllShape& s :
         {AllToAllShape{1, 1, 1, 1, 1}, AllToAllShape{1, 8, 1, 1, 64}, AllToAllShape{3, 5, 2, 3, 7},
          AllToAllShape{2, 16, 1, 4, 32}, AllToAllShape{1, 1, 40, 2, 33}, AllToAllShape{4, 3, 3, 1, 1}}) {
      AllToAllShape shape = s;
      shape.gather_x = gather_x;
      ASSERT_NO_FATAL_FAILURE(all_to_all(rank, rank.everyone(), shape, dtype));
      ASSERT_NO_FATAL_FAILURE(all_to_all(rank, rank.reversed(), shape, dtype));
    }
  }
}

void uneven_all_to_all(Rank& rank) {
  for (const int scale : {0, 1, 37, 2000})
    for (const bool apart : {false, true})
      ASSERT_NO_FATAL_FAILURE(all_to_all_v(rank, rank.everyone(), scale, apart));
}

void shift_sizes(Rank& rank, DType dtype) {
  for (const std::int64_t n : kSizes) ASSERT_NO_FATAL_FAILURE(shift(rank, rank.everyone(), 1, n, dtype));
  ASSERT_NO_FATAL_FAILURE(shift(rank, rank.reversed(), 129, 40, dtype));
}

// Data shifted as often as there are members has been with everyone and is home again.
void shift_around(Rank& rank) {
  for (const std::int64_t n : {3, 5003}) {
    std::byte* buffers[] = {rank.allocate(n * 4), rank.allocate(n * 4)};
    fill(buffers[0], n, rank.world.rank(), 9, DType::kF32);
    const int p = rank.world.size();
    for (int k = 0; k < p; ++k)
      run(rank, rank.everyone(),
          {.kind = Collective::kShift, .in = buffers[k % 2], .out = buffers[(k + 1) % 2], .inner = n});
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(get(buffers[p % 2], i, DType::kF32), value(rank.world.rank(), i, 9, DType::kF32));
  }
}

void broadcasts(Rank& rank) {
  for (int root = 0; root < rank.world.size(); ++root) {
    ASSERT_NO_FATAL_FAILURE(broadcast(rank, rank.everyone(), 3, root, false));
    ASSERT_NO_FATAL_FAILURE(broadcast(rank, rank.everyone(), 20011, root, root % 2 == 0));
  }
}

// Each rank sends to its right neighbour twice as many messages as a channel has slots, of all sizes, before
// it waits for any.
void ring_of_messages(Rank& rank) {
  Group& g = rank.everyone();
  const int p = g.size(), right = (g.index() + 1) % p, left = (g.index() + p - 1) % p;
  if (p == 1) return;
  std::vector<Request*> requests;
  std::vector<std::byte*> received;
  auto size = [](int m) { return m * m * 31 + 1; };
  for (int m = 0; m < 2 * kSlots; ++m) {
    std::byte* in = rank.allocate(size(m) * 4);
    received.push_back(rank.allocate(size(m) * 4));
    fill(in, size(m), g.index(), m, DType::kF32);
    requests.push_back(g.start({.kind = Collective::kSend, .in = in, .inner = size(m), .peer = right}));
    requests.push_back(
        g.start({.kind = Collective::kRecv, .out = received.back(), .inner = size(m), .peer = left}));
  }
  for (auto r = requests.rbegin(); r != requests.rend(); ++r) {
    rank.world.wait(**r);
    ASSERT_EQ((*r)->wire_bytes, wire_bytes((*r)->args, (*r)->algorithm, g.place()).value);
  }
  for (int m = 0; m < 2 * kSlots; ++m) {
    for (std::int64_t i = 0; i < size(m); ++i) {
      ASSERT_EQ(get(received[static_cast<std::size_t>(m)], i, DType::kF32), value(left, i, m, DType::kF32));
    }
  }
}

// Runs many collectives on two groups at once, polled now and then, and waited for in another order than
// started.
void outstanding(Rank& rank) {
  Group* groups[] = {&rank.everyone(), &rank.reversed()};
  std::vector<Request*> requests;
  std::vector<std::byte*> buffers;
  const std::int64_t n = 3000;
  for (int m = 0; m < 3 * kSlots; ++m) {
    buffers.push_back(rank.allocate(n * 4));
    fill(buffers.back(), n, rank.world.rank(), m, DType::kF32);
    requests.push_back(groups[m % 2]->start({.kind = Collective::kAllReduce,
                                             .in = buffers.back(),
                                             .out = buffers.back(),
                                             .inner = m % 3 == 0 ? 5 : n}));
    if (m % 5 == 0) rank.world.progress();
  }
  const int p = rank.world.size();
  for (int k = 0; k < 3 * kSlots; ++k) {
    rank.world.wait(*requests[static_cast<std::size_t>((k * 7 + rank.world.rank()) % (3 * kSlots))]);
  }
  ASSERT_TRUE(rank.world.progress());
  for (int m = 0; m < 3 * kSlots; ++m) {
    for (std::int64_t i = 0; i < (m % 3 == 0 ? 5 : n); ++i) {
      std::vector<float> terms;
      for (int r = 0; r < p; ++r) terms.push_back(value(r, i, m, DType::kF32));
      ASSERT_NO_FATAL_FAILURE(expect_reduced(get(buffers[static_cast<std::size_t>(m)], i, DType::kF32), terms,
                                             ReduceOp::kSum, DType::kF32, i));
    }
  }
}

// A fast rank runs ahead by as many small collectives as there are slots, again and again: inputs in reused
// buffers must not be overtaken.
void reused_buffers(Rank& rank) {
  Group& g = rank.everyone();
  std::byte* buffer = rank.allocate(8);
  std::byte* large = rank.allocate(2000 * 4);
  for (int m = 0; m < 100; ++m) {
    fill(buffer, 2, rank.world.rank(), m, DType::kF32);
    run(rank, g, {.kind = Collective::kAllReduce, .in = buffer, .out = buffer, .inner = 2});
    const auto terms = terms_at(g, 1, m, DType::kF32);
    ASSERT_NO_FATAL_FAILURE(
        expect_reduced(get(buffer, 1, DType::kF32), terms, ReduceOp::kSum, DType::kF32, 1));
    fill(large, 2000, rank.world.rank(), m, DType::kF32);
    run(rank, g, {.kind = Collective::kAllReduce, .in = large, .out = large, .inner = 2000});
    ASSERT_NO_FATAL_FAILURE(expect_reduced(get(large, 1999, DType::kF32), terms_at(g, 1999, m, DType::kF32),
                                           ReduceOp::kSum, DType::kF32, 1999));
    if (m % 10 == 0) run(rank, g, {.kind = Collective::kBarrier});
  }
}

// Two runs on the same input give the same bits.
void repeatable(Rank& rank) {
  const std::int64_t n = 30011;
  std::vector<std::byte> first;
  for (int round = 0; round < 3; ++round) {
    std::byte* buffer = rank.allocate(n * 4);
    fill(buffer, n, rank.world.rank(), 11, DType::kF32);
    run(rank, rank.everyone(), {.kind = Collective::kAllReduce, .in = buffer, .out = buffer, .inner = n});
    if (round == 0) first.assign(buffer, buffer + n * 4);
    ASSERT_EQ(std::memcmp(first.data(), buffer, first.size()), 0);
  }
}

// Halves of the world that share a key and never meet.
void subgroups(Rank& rank) {
  const int p = rank.world.size(), me = rank.world.rank();
  std::vector<int> mine;
  for (int r = me % 2; r < p; r += 2) mine.push_back(r);
  Group& g = rank.world.make_group(5, mine);
  ASSERT_NO_FATAL_FAILURE(all_reduce(rank, g, 777, DType::kF32, ReduceOp::kSum, true, 1));
  ASSERT_NO_FATAL_FAILURE(all_gather(rank, g, 3, 50, DType::kBF16, false));
}

}  // namespace

std::byte* Rank::allocate(std::int64_t bytes) {
  if (used_ == 0) used_ = 64 * (1 + world.rank());
  std::byte* at = arena.base() + used_;
  used_ += (bytes + 63) / 64 * 64;
  EXPECT_LE(used_, arena.budget().value);
  arena.touch(Bytes(at - arena.base()), Bytes(bytes));
  return at;
}

Group& Rank::everyone() {
  if (everyone_ == nullptr) {
    std::vector<int> ranks(static_cast<std::size_t>(world.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    everyone_ = &world.make_group(0, ranks);
  }
  return *everyone_;
}

Group& Rank::reversed() {
  if (reversed_ == nullptr) {
    std::vector<int> ranks(static_cast<std::size_t>(world.size()));
    std::iota(ranks.rbegin(), ranks.rend(), 0);
    reversed_ = &world.make_group(1, ranks);
  }
  return *reversed_;
}

const std::vector<Case>& cases() {
  using enum DType;
  static const std::vector<Case> all = {
      {"AllReduceSumF32", [](Rank& r) { all_reduce_sizes(r, kF32, ReduceOp::kSum); }},
      {"AllReduceSumBF16", [](Rank& r) { all_reduce_sizes(r, kBF16, ReduceOp::kSum); }},
      {"AllReduceMaxF32", [](Rank& r) { all_reduce_sizes(r, kF32, ReduceOp::kMax); }},
      {"AllReduceMaxBF16", [](Rank& r) { all_reduce_sizes(r, kBF16, ReduceOp::kMax); }},
      {"ReduceScatterF32", [](Rank& r) { reduce_scatter_shapes(r, kF32); }},
      {"ReduceScatterBF16", [](Rank& r) { reduce_scatter_shapes(r, kBF16); }},
      {"AllGatherF32", [](Rank& r) { all_gather_shapes(r, kF32); }},
      {"AllGatherBF16", [](Rank& r) { all_gather_shapes(r, kBF16); }},
      {"PiecesF32", [](Rank& r) { pieces_of_all_kinds(r, kF32); }},
      {"PiecesBF16", [](Rank& r) { pieces_of_all_kinds(r, kBF16); }},
      {"AllToAllF32", [](Rank& r) { all_to_all_shapes(r, kF32); }},
      {"AllToAllBF16", [](Rank& r) { all_to_all_shapes(r, kBF16); }},
      {"AllToAllV", uneven_all_to_all},
      {"ShiftF32", [](Rank& r) { shift_sizes(r, kF32); }},
      {"ShiftBF16", [](Rank& r) { shift_sizes(r, kBF16); }},
      {"ShiftAround", shift_around},
      {"Broadcast", broadcasts},
      {"SendRecv", ring_of_messages},
      {"Outstanding", outstanding},
      {"ReusedBuffers", reused_buffers},
      {"Repeatable", repeatable},
      {"Subgroups", subgroups},
  };
  return all;
}

}  // namespace hyperrun::conformance
