#include "runtime/device/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class Attention : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Attention);

using kernels::AttentionShape;

std::int64_t keys_seen(const AttentionShape& s, std::int64_t i) { return s.causal ? i + 1 : s.seq; }

// Index of (batch, position, head) in a contiguous tensor of `heads` heads.
std::int64_t at(const AttentionShape& s, std::int64_t heads, std::int64_t b, std::int64_t i, std::int64_t h) {
  return ((b * s.seq + i) * heads + h) * s.head_dim;
}
std::int64_t value_dim(const AttentionShape& s) { return s.value_dim > 0 ? s.value_dim : s.head_dim; }
// The same index in a tensor of values.
std::int64_t value_at(const AttentionShape& s, std::int64_t heads, std::int64_t b, std::int64_t i,
                      std::int64_t h) {
  return at(s, heads, b, i, h) / s.head_dim * value_dim(s);
}

struct Reference {
  Doubles o, lse;
  std::vector<Doubles> p;  // [batch * heads * seq] rows of probabilities
};

Reference reference(const AttentionShape& s, const Doubles& q, const Doubles& k, const Doubles& v) {
  Reference r{Doubles(q.size() / s.head_dim * value_dim(s)), {}, {}};
  const double scale = s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.head_dim));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t g = h / (s.heads / s.kv_heads);
      for (std::int64_t i = 0; i < s.seq; ++i) {
        Doubles p(keys_seen(s, i));
        double sum = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          double score = 0;
          for (std::int64_t c = 0; c < s.head_dim; ++c) {
            score += q[at(s, s.heads, b, i, h) + c] * k[at(s, s.kv_heads, b, j, g) + c];
          }
          const bool unseen = s.window > 0 && static_cast<std::int64_t>(j) <= i - s.window;
          sum += p[j] = unseen ? 0 : std::exp(score * scale);
        }
        for (std::size_t j = 0; j < p.size(); ++j) {
          p[j] /= sum;
          for (std::int64_t c = 0; c < value_dim(s); ++c) {
            r.o[value_at(s, s.heads, b, i, h) + c] += p[j] * v[value_at(s, s.kv_heads, b, j, g) + c];
          }
        }
        r.lse.push_back(std::log(sum));
        r.p.push_back(std::move(p));
      }
    }
  }
  return r;
}

struct Gradients {
  Doubles dq, dk, dv;
};

// The gradients by the chain rule, key by key; finite differences below check them.
Gradients reference_gradients(const AttentionShape& s, const Reference& r, const Doubles& q, const Doubles& k,
                              const Doubles& v, const Doubles& d_o) {
  Gradients d{Doubles(q.size()), Doubles(k.size()), Doubles(v.size())};
  const double scale = s.scale > 0 ? s.scale : 1 / std::sqrt(static_cast<double>(s.head_dim));
  std::size_t row = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const std::int64_t g = h / (s.heads / s.kv_heads);
      for (std::int64_t i = 0; i < s.seq; ++i, ++row) {
        const std::int64_t qi = at(s, s.heads, b, i, h), oi = value_at(s, s.heads, b, i, h);
        const Doubles& p = r.p[row];
        double mean = 0;
        for (std::int64_t c = 0; c < value_dim(s); ++c) mean += d_o[oi + c] * r.o[oi + c];
        for (std::size_t j = 0; j < p.size(); ++j) {
          const std::int64_t kj = at(s, s.kv_heads, b, static_cast<std::int64_t>(j), g);
          const std::int64_t vj = value_at(s, s.kv_heads, b, static_cast<std::int64_t>(j), g);
          double dp = 0;
          for (std::int64_t c = 0; c < value_dim(s); ++c) dp += d_o[oi + c] * v[vj + c];
          const double ds = p[j] * (dp - mean) * scale;
          for (std::int64_t c = 0; c < s.head_dim; ++c) {
            d.dq[qi + c] += ds * k[kj + c];
            d.dk[kj + c] += ds * q[qi + c];
          }
          for (std::int64_t c = 0; c < value_dim(s); ++c) d.dv[vj + c] += p[j] * d_o[oi + c];
        }
      }
    }
  }
  return d;
}

struct Inputs {
  explicit Inputs(const AttentionShape& s)
      : q(values(s.batch * s.seq * s.heads * s.head_dim, 1)),
        k(values(s.batch * s.seq * s.kv_heads * s.head_dim, 2)),
        v(values(s.batch * s.seq * s.kv_heads * value_dim(s), 3)),
        d_o(values(s.batch * s.seq * s.heads * value_dim(s), 4)) {}
  Floats q, k, v, d_o;
};

struct Outputs {
  Floats o, lse, dq, dk, dv;
};

// Scratch and outputs start as NaN, so a number that is never written, or read too early, shows.
Outputs run(const AttentionShape& s, const Inputs& in) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Outputs out{Floats(in.d_o.size(), kNan), Floats(s.batch * s.heads * s.seq, kNan), Floats(in.q.size(), kNan),
              Floats(in.k.size(), kNan), Floats(in.v.size(), kNan)};
  Floats scratch(kernels::attention_scratch_bytes(s) / 4, kNan);
  Floats backward_scratch(kernels::attention_backward_scratch_bytes(s) / 4, kNan);
  kernels::attention(s, in.q.data(), in.k.data(), in.v.data(), out.o.data(), out.lse.data(), scratch.data());
  kernels::attention_backward(s, in.q.data(), in.k.data(), in.v.data(), out.o.data(), out.lse.data(),
                              in.d_o.data(), out.dq.data(), out.dk.data(), out.dv.data(),
                              backward_scratch.data());
  return out;
}

void expect_matches(const AttentionShape& s, const Outputs& out, const Inputs& in) {
  const Doubles q = to_double(in.q), k = to_double(in.k), v = to_double(in.v);
  const Reference r = reference(s, q, k, v);
  const Gradients d = reference_gradients(s, r, q, k, v, to_double(in.d_o));
  const auto where = ::testing::Message() << "seq " << s.seq << " heads " << s.heads << "/" << s.kv_heads
                                          << " head_dim " << s.head_dim << " value_dim " << value_dim(s)
                                          << " causal " << s.causal << " window " << s.window;
  EXPECT_LT(relative_error(out.o, r.o), kRoundOff) << where;
  EXPECT_LT(relative_error(out.lse, r.lse), kRoundOff) << where;
  EXPECT_LT(relative_error(out.dq, d.dq), kRoundOff) << where;
  EXPECT_LT(relative_error(out.dk, d.dk), kRoundOff) << where;
  EXPECT_LT(relative_error(out.dv, d.dv), kRoundOff) << where;
}

// Sizes around the edges of strips (6), vectors (16), blocks (48) and panels (64), heads that share keys, and
// head dimensions that are no multiple of a vector.
TEST_P(Attention, MatchesDouble) {
  const auto expect_alike = [](const AttentionShape& s) {
    const Inputs in(s);
    expect_matches(s, run(s, in), in);
  };
  for (const bool causal : {true, false}) {
    for (const std::int64_t seq : {1, 5, 6, 7, 16, 47, 48, 49, 64, 65, 97, 130}) {
      expect_alike({.batch = 1, .seq = seq, .heads = 2, .kv_heads = 1, .head_dim = 20, .causal = causal});
    }
    expect_alike({.batch = 2, .seq = 70, .heads = 4, .kv_heads = 2, .head_dim = 32, .causal = causal});
    expect_alike({.batch = 1, .seq = 67, .heads = 2, .kv_heads = 2, .head_dim = 64, .causal = causal});
    expect_alike({.batch = 1, .seq = 50, .heads = 3, .kv_heads = 1, .head_dim = 7, .causal = causal});
    for (const std::int64_t width : {5, 16, 40})
      expect_alike({.batch = 2,
                    .seq = 67,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 20,
                    .causal = causal,
                    .value_dim = width});
    expect_alike(
        {.batch = 1, .seq = 40, .heads = 1, .kv_heads = 1, .head_dim = 128, .causal = causal, .scale = 0.3F});
  }
}

// Windows of two keys (of one the gradients are nothing but rounding), around the edges of strips, vectors,
// blocks and panels, and longer than the sequence.
TEST_P(Attention, WithAWindowMatchesDouble) {
  for (const std::int64_t window : {2, 5, 6, 7, 17, 48, 63, 64, 65, 200})
    for (const std::int64_t seq : {1, 7, 49, 64, 130, 200}) {
      AttentionShape s{.batch = 2, .seq = seq, .heads = 4, .kv_heads = 2, .head_dim = 20, .value_dim = 9};
      s.window = window;
      const Inputs in(s);
      expect_matches(s, run(s, in), in);
    }
}

using Cuts = std::vector<std::int64_t>;  // first rows of blocks, and the end of the last

// The key blocks that the rows of block `r` see, in the order of a ring: their own first, then those before.
std::vector<std::size_t> ring_order(std::size_t r) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i <= r; ++i) order.push_back(r - i);
  return order;
}

// Computes each block of rows against each block of keys in the order of `order`, one call each.
template <class Order>
Outputs run_in_blocks(const AttentionShape& whole, const Inputs& in, const Cuts& rows, const Cuts& keys,
                      Order order) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Outputs out{Floats(in.q.size(), kNan), Floats(whole.batch * whole.heads * whole.seq, kNan),
              Floats(in.q.size(), kNan), Floats(in.k.size()), Floats(in.k.size())};
  const std::int64_t width = whole.heads * whole.head_dim, kv_width = whole.kv_heads * whole.head_dim;
  const auto each_call = [&](auto call) {
    for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
      AttentionShape s = whole;
      s.q_rows = s.kv_rows = whole.seq;
      s.seq = rows[r + 1] - rows[r];
      for (const std::size_t j : order(r)) {
        s.keys = keys[j + 1] - keys[j];
        s.causal = whole.causal && j == r;
        call(s, rows[r], keys[j]);
        s.onward = true;
      }
    }
  };
  each_call([&](const AttentionShape& s, std::int64_t row, std::int64_t key) {
    Floats scratch(kernels::attention_scratch_bytes(s) / 4, kNan);
    kernels::attention(s, in.q.data() + row * width, in.k.data() + key * kv_width,
                       in.v.data() + key * kv_width, out.o.data() + row * width, out.lse.data() + row,
                       scratch.data());
  });
  each_call([&](const AttentionShape& s, std::int64_t row, std::int64_t key) {
    Floats scratch(kernels::attention_backward_scratch_bytes(s) / 4, kNan);
    Floats dk(in.k.size(), kNan), dv(in.k.size(), kNan);
    kernels::attention_backward(
        s, in.q.data() + row * width, in.k.data() + key * kv_width, in.v.data() + key * kv_width,
        out.o.data() + row * width, out.lse.data() + row, in.d_o.data() + row * width,
        out.dq.data() + row * width, dk.data() + key * kv_width, dv.data() + key * kv_width, scratch.data());
    for (std::size_t i = 0; i < dk.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) / kv_width % whole.seq;
      const bool in_block = at >= key && at < key + s.keys;
      ASSERT_EQ(std::isnan(dk[i]), !in_block) << "only the block's rows are written";
      if (in_block) out.dk[i] += dk[i], out.dv[i] += dv[i];
    }
  });
  return out;
}

// Merging in the order of a ring or from the front gives the same result.
TEST_P(Attention, KeysInBlocksMatchDouble) {
  const Cuts cuts{0, 13, 50, 67};
  for (const auto& s : {AttentionShape{.batch = 2, .seq = 67, .heads = 4, .kv_heads = 2, .head_dim = 20},
                        AttentionShape{.batch = 1, .seq = 67, .heads = 3, .kv_heads = 1, .head_dim = 7}}) {
    const Inputs in(s);
    expect_matches(s, run_in_blocks(s, in, cuts, cuts, ring_order), in);
    expect_matches(s,
                   run_in_blocks(s, in, cuts, cuts,
                                 [](std::size_t r) {
                                   auto order = ring_order(r);
                                   std::reverse(order.begin(), order.end());
                                   return order;
                                 }),
                   in);
  }
}

TEST_P(Attention, BlocksOfOtherSizesMatchDouble) {
  const AttentionShape s{.batch = 2, .seq = 67, .heads = 4, .kv_heads = 2, .head_dim = 16, .causal = false};
  const Inputs in(s);
  const auto all = [](std::size_t) { return std::vector<std::size_t>{1, 0, 2}; };
  expect_matches(s, run_in_blocks(s, in, {0, 1, 30, 67}, {0, 7, 64, 67}, all), in);
}

// One block's scores dwarf the others', whichever comes first: nothing overflows, nothing is lost. Scores of
// a few hundred are rounded by 2^-24 of that, which exp turns into an error of 2e-5.
TEST_P(Attention, BlocksOfVeryDifferentScores) {
  const AttentionShape s{.batch = 1, .seq = 40, .heads = 1, .kv_heads = 1, .head_dim = 8};
  for (const std::int64_t loud : {0, 20}) {
    Inputs in(s);
    for (std::int64_t i = 0; i < 20 * 8; ++i) in.k[static_cast<std::size_t>(loud * 8 + i)] *= 300;
    const Outputs whole = run(s, in), blocks = run_in_blocks(s, in, {0, 20, 40}, {0, 20, 40}, ring_order);
    EXPECT_LT(relative_error(blocks.o, to_double(whole.o)), 2e-5);
    EXPECT_LT(relative_error(blocks.dq, to_double(whole.dq)), 2e-5);
    EXPECT_LT(relative_error(blocks.dk, to_double(whole.dk)), 2e-5);
    EXPECT_LT(relative_error(blocks.dv, to_double(whole.dv)), 2e-5);
  }
}

TEST(AttentionReference, GradientsAreFiniteDifferences) {
  for (const bool causal : {true, false}) {
    const AttentionShape s{
        .batch = 2, .seq = 5, .heads = 4, .kv_heads = 2, .head_dim = 3, .causal = causal, .value_dim = 2};
    const Inputs in(s);
    const Doubles q = to_double(in.q), k = to_double(in.k), v = to_double(in.v), d_o = to_double(in.d_o);
    const Gradients d = reference_gradients(s, reference(s, q, k, v), q, k, v, d_o);
    const auto numeric = [&](const Doubles& x, auto loss) { return numeric_gradient(loss, x); };
    EXPECT_LT(
        relative_error(d.dq, numeric(q, [&](const Doubles& x) { return dot(reference(s, x, k, v).o, d_o); })),
        kDifference);
    EXPECT_LT(
        relative_error(d.dk, numeric(k, [&](const Doubles& x) { return dot(reference(s, q, x, v).o, d_o); })),
        kDifference);
    EXPECT_LT(
        relative_error(d.dv, numeric(v, [&](const Doubles& x) { return dot(reference(s, q, k, x).o, d_o); })),
        kDifference);
  }
}

// With q, k and v side by side in one buffer the bits are those of separate buffers, and nothing beside the
// outputs is touched.
TEST_P(Attention, FusedBuffersGiveTheSameBits) {
  AttentionShape s{.batch = 2, .seq = 53, .heads = 4, .kv_heads = 2, .head_dim = 24};
  const Inputs in(s);
  const Outputs apart = run(s, in);
  const std::int64_t dq = s.heads * s.head_dim, dk = s.kv_heads * s.head_dim, rows = s.batch * s.seq;
  const std::int64_t wide = dq + 2 * dk + 3, wide_o = dq + 5;
  s.q_stride = s.kv_stride = wide;
  s.o_stride = wide_o;
  Floats qkv(rows * wide), d_qkv(rows * wide, 5.0F), o(rows * wide_o, 5.0F), d_o(rows * wide_o);
  Floats lse(s.batch * s.heads * s.seq);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(in.q.data() + r * dq, dq, qkv.data() + r * wide);
    std::copy_n(in.k.data() + r * dk, dk, qkv.data() + r * wide + dq);
    std::copy_n(in.v.data() + r * dk, dk, qkv.data() + r * wide + dq + dk);
    std::copy_n(in.d_o.data() + r * dq, dq, d_o.data() + r * wide_o);
  }
  std::vector<char> scratch(kernels::attention_scratch_bytes(s) +
                            kernels::attention_backward_scratch_bytes(s));
  const float* base = qkv.data();
  float* d_base = d_qkv.data();
  kernels::attention(s, base, base + dq, base + dq + dk, o.data(), lse.data(), scratch.data());
  kernels::attention_backward(s, base, base + dq, base + dq + dk, o.data(), lse.data(), d_o.data(), d_base,
                              d_base + dq, d_base + dq + dk, scratch.data());
  EXPECT_EQ(lse, apart.lse);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < dq; ++i) ASSERT_EQ(o[r * wide_o + i], apart.o[r * dq + i]);
    for (std::int64_t i = 0; i < dq; ++i) ASSERT_EQ(d_qkv[r * wide + i], apart.dq[r * dq + i]);
    for (std::int64_t i = 0; i < dk; ++i) ASSERT_EQ(d_qkv[r * wide + dq + i], apart.dk[r * dk + i]);
    for (std::int64_t i = 0; i < dk; ++i) ASSERT_EQ(d_qkv[r * wide + dq + dk + i], apart.dv[r * dk + i]);
    for (std::int64_t i = 0; i < 3; ++i) ASSERT_EQ(d_qkv[r * wide + dq + 2 * dk + i], 5.0F);
    for (std::int64_t i = 0; i < 5; ++i) ASSERT_EQ(o[r * wide_o + dq + i], 5.0F);
  }
}

// A device that holds some of the heads computes the bits that one device with all of them would.
TEST_P(Attention, AHeadAloneGivesTheSameBits) {
  const AttentionShape all{.batch = 1, .seq = 60, .heads = 4, .kv_heads = 2, .head_dim = 16};
  const Inputs in(all);
  const Outputs whole = run(all, in);
  AttentionShape half = all;
  half.heads = 2;
  half.kv_heads = 1;
  Inputs part(half);
  for (std::int64_t i = 0; i < all.seq; ++i) {
    std::copy_n(in.q.data() + i * 64 + 32, 32, part.q.data() + i * 32);
    std::copy_n(in.d_o.data() + i * 64 + 32, 32, part.d_o.data() + i * 32);
    std::copy_n(in.k.data() + i * 32 + 16, 16, part.k.data() + i * 16);
    std::copy_n(in.v.data() + i * 32 + 16, 16, part.v.data() + i * 16);
  }
  const Outputs out = run(half, part);
  for (std::int64_t i = 0; i < all.seq; ++i) {
    for (std::int64_t c = 0; c < 32; ++c) ASSERT_EQ(out.o[i * 32 + c], whole.o[i * 64 + 32 + c]);
    for (std::int64_t c = 0; c < 16; ++c) ASSERT_EQ(out.dk[i * 16 + c], whole.dk[i * 32 + 16 + c]);
  }
}

TEST_P(Attention, LargeScoresDoNotOverflow) {
  const AttentionShape s{.batch = 1, .seq = 20, .heads = 1, .kv_heads = 1, .head_dim = 8};
  Inputs in(s);
  for (float& x : in.q) x *= 1000;
  for (const float x : run(s, in).dq) ASSERT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace hyperrun::testing
