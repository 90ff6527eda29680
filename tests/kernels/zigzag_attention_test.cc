// A ring of devices, one after the other in this process, against attention of the whole sequence.
#include "runtime/device/kernels/zigzag_attention.h"

#include <algorithm>
#include <limits>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class ZigzagAttention : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(ZigzagAttention);

using kernels::AttentionShape;
using kernels::KeysOf;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Tensors {
  explicit Tensors(const AttentionShape& s)
      : q(s.batch * s.seq * s.heads * s.head_dim, kNan),
        k(s.batch * s.seq * s.kv_heads * s.head_dim, kNan),
        v(s.value_dim > 0 ? s.batch * s.seq * s.kv_heads * s.value_dim : std::ssize(k), kNan),
        d_o(s.value_dim > 0 ? s.batch * s.seq * s.heads * s.value_dim : std::ssize(q), kNan),
        o(d_o),
        dq(q),
        dk(k),
        dv(v),
        lse(s.batch * s.heads * s.seq, kNan) {}
  Floats q, k, v, d_o, o, dq, dk, dv, lse;
};

struct Scratch {
  explicit Scratch(const AttentionShape& s)
      : forward((kernels::window_tables_bytes(s.seq) + kernels::attention_scratch_bytes(s)) / 4, kNan),
        backward((kernels::window_tables_bytes(s.seq) + kernels::attention_backward_scratch_bytes(s)) / 4,
                 kNan) {}
  Floats forward, backward;
};

Tensors whole(const AttentionShape& s) {
  Tensors t(s);
  t.q = values(std::ssize(t.q), 1);
  t.k = values(std::ssize(t.k), 2);
  t.v = values(std::ssize(t.v), 3);
  t.d_o = values(std::ssize(t.d_o), 4);
  Scratch scratch(s);
  kernels::attention(s, t.q.data(), t.k.data(), t.v.data(), t.o.data(), t.lse.data(), scratch.forward.data());
  kernels::attention_backward(s, t.q.data(), t.k.data(), t.v.data(), t.o.data(), t.lse.data(), t.d_o.data(),
                              t.dq.data(), t.dk.data(), t.dv.data(), scratch.backward.data());
  return t;
}

// Returns rows of [batch, seq, width] for each batch entry: those of chunks r and 2n - 1 - r of 2n; without a
// mask the r-th of n.
Floats part(const AttentionShape& s, const Floats& x, std::int64_t n, std::int64_t r) {
  const std::int64_t chunk = s.seq / (s.causal ? 2 * n : n), width = std::ssize(x) / (s.batch * s.seq);
  const std::vector<std::int64_t> chunks =
      s.causal ? std::vector{r, 2 * n - 1 - r} : std::vector<std::int64_t>{r};
  Floats rows;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (const std::int64_t c : chunks) {
      const auto from = x.begin() + (b * s.seq + c * chunk) * width;
      rows.insert(rows.end(), from, from + chunk * width);
    }
  return rows;
}

// The positions of member r's rows.
kernels::Stretches stretches(const AttentionShape& local, std::int64_t n, std::int64_t r) {
  const std::int64_t chunk = local.seq / 2;
  return {r * chunk, (2 * n - 1 - r) * chunk};
}

// The results of each member, with gradients of its keys and values summed over all members.
std::vector<Tensors> round(const AttentionShape& s, const Tensors& all, std::int64_t n) {
  AttentionShape local = s;
  local.seq = s.seq / n;
  std::vector<Tensors> members;
  for (std::int64_t r = 0; r < n; ++r) {
    members.emplace_back(local);
    Tensors& m = members.back();
    m.q = part(s, all.q, n, r), m.k = part(s, all.k, n, r), m.v = part(s, all.v, n, r);
    m.d_o = part(s, all.d_o, n, r);
  }
  Scratch scratch(local);
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t step = 0; step < n; ++step) {
      Tensors& m = members[r];
      const Tensors& from = members[(r - step + n) % n];
      if (local.window > 0)
        kernels::window_attention(local, stretches(local, n, r), stretches(local, n, (r - step + n) % n),
                                  step > 0, m.q.data(), from.k.data(), from.v.data(), m.o.data(),
                                  m.lse.data(), scratch.forward.data());
      else if (step == 0)
        kernels::attention(local, m.q.data(), m.k.data(), m.v.data(), m.o.data(), m.lse.data(),
                           scratch.forward.data());
      else
        kernels::zigzag_attention(local, step <= r ? KeysOf::kPartBefore : KeysOf::kPartBehind, m.q.data(),
                                  from.k.data(), from.v.data(), m.o.data(), m.lse.data(),
                                  scratch.forward.data());
    }
  for (std::int64_t step = 0; step < n; ++step)
    for (std::int64_t r = 0; r < n; ++r) {
      Tensors &m = members[r], &from = members[(r - step + n) % n];
      if (step == 0 && local.window == 0) {
        kernels::attention_backward(local, m.q.data(), m.k.data(), m.v.data(), m.o.data(), m.lse.data(),
                                    m.d_o.data(), m.dq.data(), m.dk.data(), m.dv.data(),
                                    scratch.backward.data());
        continue;
      }
      Floats dk(m.dk.size(), kNan), dv(m.dv.size(), kNan);
      if (local.window > 0)
        kernels::window_attention_backward(
            local, stretches(local, n, r), stretches(local, n, (r - step + n) % n), step > 0, m.q.data(),
            from.k.data(), from.v.data(), m.o.data(), m.lse.data(), m.d_o.data(), m.dq.data(), dk.data(),
            dv.data(), scratch.backward.data());
      else
        kernels::zigzag_attention_backward(local, step <= r ? KeysOf::kPartBefore : KeysOf::kPartBehind,
                                           m.q.data(), from.k.data(), from.v.data(), m.o.data(), m.lse.data(),
                                           m.d_o.data(), m.dq.data(), dk.data(), dv.data(),
                                           scratch.backward.data());
      const auto add = [&](const Floats& part_of, Floats& sum) {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = (step == 0 ? 0 : sum[i]) + part_of[i];
      };
      add(dk, from.dk), add(dv, from.dv);
    }
  return members;
}

void expect_whole(const AttentionShape& s, std::int64_t n) {
  const Tensors all = whole(s);
  const std::vector<Tensors> members = round(s, all, n);
  for (std::int64_t r = 0; r < n; ++r) {
    const Tensors& m = members[r];
    const auto expected = [&](const Floats& x) { return to_double(part(s, x, n, r)); };
    const auto where = ::testing::Message() << "member " << r << " of " << n;
    EXPECT_LT(relative_error(m.o, expected(all.o)), kRoundOff) << where;
    EXPECT_LT(relative_error(m.dq, expected(all.dq)), kRoundOff) << where;
    EXPECT_LT(relative_error(m.dk, expected(all.dk)), kRoundOff) << where;
    EXPECT_LT(relative_error(m.dv, expected(all.dv)), kRoundOff) << where;
  }
}

// Sizes with chunks of one position, of odd sizes, and of more than a block of rows and a panel of keys.
TEST_P(ZigzagAttention, ARingGivesTheWhole) {
  for (const std::int64_t n : {2, 3, 4}) {
    expect_whole({.batch = 2, .seq = 2 * n, .heads = 2, .kv_heads = 1, .head_dim = 8}, n);
    expect_whole({.batch = 2, .seq = 2 * n * 7, .heads = 4, .kv_heads = 2, .head_dim = 20}, n);
    expect_whole({.batch = 2, .seq = 2 * n * 7, .heads = 4, .kv_heads = 2, .head_dim = 20, .value_dim = 13},
                 n);
    expect_whole({.batch = 1, .seq = 2 * n * 67, .heads = 3, .kv_heads = 1, .head_dim = 16}, n);
  }
}

// Windows within a chunk, over several, and over all.
TEST_P(ZigzagAttention, ARingWithAWindowGivesTheWhole) {
  for (const std::int64_t n : {2, 3, 4})
    for (const std::int64_t chunk : {1, 7, 67})
      for (const std::int64_t window :
           {std::int64_t{1}, std::int64_t{2}, chunk, chunk + 1, 3 * chunk + 2, n * chunk, 2 * n * chunk}) {
        AttentionShape s{.batch = 2, .seq = 2 * n * chunk, .heads = 4, .kv_heads = 2, .head_dim = 20};
        s.value_dim = 13;
        s.window = window;
        expect_whole(s, n);
      }
}

TEST_P(ZigzagAttention, ARingWithoutAMaskGivesTheWhole) {
  for (const std::int64_t n : {2, 3})
    for (const std::int64_t rows : {1, 7, 67}) {
      AttentionShape s{.batch = 2, .seq = n * rows, .heads = 4, .kv_heads = 2, .head_dim = 20};
      s.causal = false;
      expect_whole(s, n);
      s.value_dim = 13;
      expect_whole(s, n);
    }
}

}  // namespace
}  // namespace hyperrun::testing
