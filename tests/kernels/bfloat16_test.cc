// Kernels on bfloat16 give, bit by bit, their float32 results on the same values, rounded once: the
// arithmetic and its order are the same. Products, whose sums may be cut in other blocks, are checked against
// a bound instead.
#include <cmath>
#include <cstring>

#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/cross_entropy.h"
#include "runtime/device/kernels/elementwise.h"
#include "runtime/device/kernels/embedding.h"
#include "runtime/device/kernels/experts.h"
#include "runtime/device/kernels/gelu.h"
#include "runtime/device/kernels/gemm.h"
#include "runtime/device/kernels/join.h"
#include "runtime/device/kernels/norm.h"
#include "runtime/device/kernels/rope.h"
#include "runtime/device/kernels/strided_copy.h"
#include "runtime/device/kernels/swiglu.h"
#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

using kernels::Bf16;
using kernels::Trans;
using Halves = std::vector<Bf16>;

// Rounds by the scalar conversion, which tests/base checks.
Halves narrow(const Floats& wide) {
  Halves half;
  for (const float x : wide) half.push_back(kernels::rounded<Bf16>(x));
  return half;
}

// A value in both formats.
struct Both {
  explicit Both(Floats values) : half(narrow(values)) {
    for (const Bf16 x : half) wide.push_back(kernels::to_float(x));
  }
  Both(std::int64_t n, std::uint32_t seed) : Both(values(n, seed)) {}

  Halves half;
  Floats wide;
};

void expect_rounded(const Halves& half, const Floats& wide) { EXPECT_TRUE(half == narrow(wide)); }

class Bfloat16 : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Bfloat16);

constexpr std::int64_t kRows = 5, kWidth = 67, kAll = kRows * kWidth;  // not a multiple of any vector

TEST_P(Bfloat16, Passes) {
  const Both a(kAll, 1), b(kAll, 2);
  Halves half(kAll);
  Floats wide(kAll);
  kernels::add(kAll, a.half.data(), b.half.data(), half.data());
  kernels::add(kAll, a.wide.data(), b.wide.data(), wide.data());
  expect_rounded(half, wide);
  Floats sum = values(kAll, 3), same = sum;
  kernels::accumulate(kAll, a.half.data(), sum.data());
  kernels::accumulate(kAll, a.wide.data(), same.data());
  EXPECT_EQ(sum, same);
  kernels::sum_rows(kRows, kWidth, a.half.data(), sum.data(), true);
  kernels::sum_rows(kRows, kWidth, a.wide.data(), same.data(), true);
  EXPECT_EQ(sum, same);
}

TEST_P(Bfloat16, Norm) {
  for (const bool centered : {false, true}) {
    const Both x(kAll, 1), w(kWidth, 2), dy(kAll, 3), addend(kAll, 4), bias(kWidth, 5);
    const kernels::NormShape shape{kRows, kWidth, kWidth, 1e-5F};
    Floats sums(kRows), squares(kRows), dots(kRows), dot_sums(kRows), same(kRows), same_sums(kRows), y(kAll),
        dx(kAll), dw(kWidth), dw_of_halves(kWidth);
    Halves y_half(kAll), dx_half(kAll);
    kernels::row_sums(kRows, kWidth, x.wide.data(), sums.data());
    kernels::row_sums(kRows, kWidth, x.half.data(), same.data());
    EXPECT_EQ(same, sums);
    const float* of_x = centered ? sums.data() : nullptr;
    kernels::row_squares(shape, x.wide.data(), of_x, squares.data());
    kernels::row_squares(shape, x.half.data(), of_x, same.data());
    EXPECT_EQ(same, squares);
    kernels::norm(shape, x.wide.data(), w.wide.data(), squares.data(), of_x,
                  centered ? bias.wide.data() : nullptr, y.data());
    kernels::norm(shape, x.half.data(), w.half.data(), squares.data(), of_x,
                  centered ? bias.half.data() : nullptr, y_half.data());
    expect_rounded(y_half, y);
    kernels::norm_dots(shape, dy.wide.data(), x.wide.data(), w.wide.data(), of_x, dots.data(),
                       dot_sums.data());
    kernels::norm_dots(shape, dy.half.data(), x.half.data(), w.half.data(), of_x, same.data(),
                       same_sums.data());
    EXPECT_EQ(same, dots);
    EXPECT_EQ(same_sums, dot_sums);
    const kernels::NormMeans means{of_x, centered ? dot_sums.data() : nullptr};
    kernels::norm_backward(shape, dy.wide.data(), x.wide.data(), w.wide.data(), {squares.data(), dots.data()},
                           means, addend.wide.data(), dx.data(), dw.data(), false);
    kernels::norm_backward(shape, dy.half.data(), x.half.data(), w.half.data(), {squares.data(), dots.data()},
                           means, addend.half.data(), dx_half.data(), dw_of_halves.data(), false);
    expect_rounded(dx_half, dx);
    EXPECT_EQ(dw_of_halves, dw);
  }
}

TEST_P(Bfloat16, Gelu) {
  const Both x(kAll, 1), dy(kAll, 2);
  Floats y(kAll), dx(kAll);
  Halves y_half(kAll), dx_half(kAll);
  kernels::gelu(kAll, x.wide.data(), y.data());
  kernels::gelu(kAll, x.half.data(), y_half.data());
  expect_rounded(y_half, y);
  kernels::gelu_backward(kAll, x.wide.data(), dy.wide.data(), dx.data());
  kernels::gelu_backward(kAll, x.half.data(), dy.half.data(), dx_half.data());
  expect_rounded(dx_half, dx);
}

TEST_P(Bfloat16, SwiGlu) {
  const Both g(kAll, 1), u(kAll, 2), dh(kAll, 3);
  Floats h(kAll), dg(kAll), du(kAll);
  Halves h_half(kAll), dg_half(kAll), du_half(kAll);
  kernels::swiglu(kRows, kWidth, g.wide.data(), u.wide.data(), kWidth, h.data());
  kernels::swiglu(kRows, kWidth, g.half.data(), u.half.data(), kWidth, h_half.data());
  expect_rounded(h_half, h);
  kernels::swiglu_backward(kRows, kWidth, g.wide.data(), u.wide.data(), kWidth, dh.wide.data(), dg.data(),
                           du.data());
  kernels::swiglu_backward(kRows, kWidth, g.half.data(), u.half.data(), kWidth, dh.half.data(),
                           dg_half.data(), du_half.data());
  expect_rounded(dg_half, dg);
  expect_rounded(du_half, du);
}

TEST_P(Bfloat16, Rope) {
  constexpr std::int64_t kSeq = 6, kHeads = 3, kDim = 10, kN = kSeq * kHeads * kDim;
  const Both x(kN, 1);
  Floats table(kSeq * kDim), y(kN);
  Halves half(kN);
  kernels::rope_table(2, kSeq, frequencies(kDim, 1e4), table.data());
  for (const auto direction : {kernels::Rotate::kForward, kernels::Rotate::kInverse}) {
    kernels::rope(direction, kSeq, kSeq, kHeads, kDim, x.wide.data(), kHeads * kDim, table.data(), y.data(),
                  kHeads * kDim);
    kernels::rope(direction, kSeq, kSeq, kHeads, kDim, x.half.data(), kHeads * kDim, table.data(),
                  half.data(), kHeads * kDim);
    expect_rounded(half, y);
    kernels::rope(direction, kSeq, kSeq, kHeads, kDim, x.wide.data(), kHeads * kDim, table.data(), y.data(),
                  kHeads * kDim, 6, kernels::Pairs::kNeighbours);
    kernels::rope(direction, kSeq, kSeq, kHeads, kDim, x.half.data(), kHeads * kDim, table.data(),
                  half.data(), kHeads * kDim, 6, kernels::Pairs::kNeighbours);
    expect_rounded(half, y);
  }
}

TEST_P(Bfloat16, Join) {
  const Both a(3 * 2 * 5, 1), b(3 * 4, 2), dy(3 * 2 * 9, 3);
  Floats y(dy.wide.size()), da(a.wide.size()), db(b.wide.size());
  Halves y_half(y.size()), da_half(da.size()), db_half(db.size());
  kernels::join(3, 2, 5, 4, a.wide.data(), b.wide.data(), y.data());
  kernels::join(3, 2, 5, 4, a.half.data(), b.half.data(), y_half.data());
  expect_rounded(y_half, y);
  kernels::join_backward(3, 2, 5, 4, dy.wide.data(), da.data(), db.data());
  kernels::join_backward(3, 2, 5, 4, dy.half.data(), da_half.data(), db_half.data());
  expect_rounded(da_half, da);
  expect_rounded(db_half, db);
}

TEST_P(Bfloat16, Embedding) {
  const Both table(4 * kWidth, 1), dout(kAll, 2);
  const std::vector<std::int32_t> ids{7, 3, 5, 7, 4};  // this part of the vocabulary is 4 to 7
  Floats out(kAll), dtable(4 * kWidth), same(4 * kWidth);
  Halves half(kAll);
  kernels::embedding(kRows, kWidth, ids.data(), table.wide.data(), 4, 4, out.data());
  kernels::embedding(kRows, kWidth, ids.data(), table.half.data(), 4, 4, half.data());
  expect_rounded(half, out);
  kernels::embedding_backward(kRows, kWidth, ids.data(), dout.wide.data(), 4, 4, false, dtable.data());
  kernels::embedding_backward(kRows, kWidth, ids.data(), dout.half.data(), 4, 4, false, same.data());
  EXPECT_EQ(same, dtable);
  Halves row(kWidth);
  kernels::select_row(1, kRows, kWidth, dout.half.data(), 10, 12, row.data());
  EXPECT_TRUE(std::equal(row.begin(), row.end(), dout.half.begin() + 2 * kWidth));
}

// Statistics use the exponentials before they are rounded.
TEST_P(Bfloat16, CrossEntropy) {
  const Both logits(kAll, 1);
  const std::vector<std::int32_t> targets{3, 66, -1, 0, 200};  // ignored, and elsewhere
  Halves e_half = logits.half;
  Floats e = logits.wide, m(kRows), s(kRows), t(kRows), m2(kRows), s2(kRows), t2(kRows);
  kernels::softmax_stats(kRows, kWidth, 0, targets.data(), e.data(), m.data(), s.data(), t.data());
  kernels::softmax_stats(kRows, kWidth, 0, targets.data(), e_half.data(), m2.data(), s2.data(), t2.data());
  expect_rounded(e_half, e);
  EXPECT_EQ(m2, m);
  EXPECT_EQ(s2, s);
  EXPECT_EQ(t2, t);
  Floats from_halves = Both(e).wide;
  kernels::cross_entropy_backward(kRows, kWidth, 0, targets.data(), m.data(), m.data(), s.data(), 0.25F,
                                  from_halves.data());
  kernels::cross_entropy_backward(kRows, kWidth, 0, targets.data(), m.data(), m.data(), s.data(), 0.25F,
                                  e_half.data());
  expect_rounded(e_half, from_halves);
}

struct AttentionCase {
  std::int64_t seq, heads, kv_heads, head_dim, value_dim;
  bool causal = true;
};

TEST_P(Bfloat16, Attention) {
  for (const AttentionCase& c : {AttentionCase{70, 4, 2, 24, 24},
                                 {13, 1, 1, 6, 6},
                                 {70, 4, 2, 24, 17},
                                 {13, 2, 2, 6, 9},
                                 {71, 4, 2, 24, 17, false}}) {
    kernels::AttentionShape shape{.batch = 2,
                                  .seq = c.seq,
                                  .heads = c.heads,
                                  .kv_heads = c.kv_heads,
                                  .head_dim = c.head_dim,
                                  .causal = c.causal,
                                  .value_dim = c.value_dim};
    const std::int64_t no = 2 * c.seq * c.heads * c.value_dim, nv = 2 * c.seq * c.kv_heads * c.value_dim;
    const std::int64_t nq = 2 * c.seq * c.heads * c.head_dim, nk = 2 * c.seq * c.kv_heads * c.head_dim;
    const Both q(nq, 1), k(nk, 2), v(nv, 3), d_o(no, 4);
    Floats o(no), lse(2 * c.heads * c.seq), same = lse, o_of_halves(no);
    Halves o_half(no);
    const auto scratch = [](std::int64_t bytes) {
      return std::vector<std::byte>(static_cast<std::size_t>(bytes));
    };
    const auto run = [&](const kernels::AttentionShape& s, auto&&... tensors) {
      kernels::attention(s, tensors..., scratch(kernels::attention_scratch_bytes(s)).data());
    };
    kernels::AttentionShape rounded = shape;
    rounded.rounded = true;
    run(shape, q.wide.data(), k.wide.data(), v.wide.data(), o.data(), lse.data());
    run(rounded, q.half.data(), k.half.data(), v.half.data(), o_half.data(), same.data());
    expect_rounded(o_half, o);
    EXPECT_EQ(same, lse);
    run(shape, q.half.data(), k.half.data(), v.half.data(), o_of_halves.data(), same.data());
    EXPECT_EQ(o_of_halves, o) << "as a ring adds it up";

    const Floats o_wide = Both(o).wide;
    Floats dq(nq), dk(nk), dv(nv), dq_of_halves(nq);
    Halves dq_half(nq), dk_half(nk), dv_half(nv);
    const auto back = [&](const kernels::AttentionShape& s, auto&&... tensors) {
      kernels::attention_backward(s, tensors...,
                                  scratch(kernels::attention_backward_scratch_bytes(s)).data());
    };
    back(shape, q.wide.data(), k.wide.data(), v.wide.data(), o_wide.data(), lse.data(), d_o.wide.data(),
         dq.data(), dk.data(), dv.data());
    back(rounded, q.half.data(), k.half.data(), v.half.data(), o_half.data(), lse.data(), d_o.half.data(),
         dq_half.data(), dk_half.data(), dv_half.data());
    expect_rounded(dq_half, dq);
    expect_rounded(dk_half, dk);
    expect_rounded(dv_half, dv);
    back(rounded, q.half.data(), k.half.data(), v.half.data(), o_half.data(), lse.data(), d_o.half.data(),
         dq_of_halves.data(), dk_half.data(), dv_half.data());
    EXPECT_EQ(dq_of_halves, dq) << "as a ring adds it up";
  }
}

TEST(Bfloat16Experts, RowsAreRoundedOnce) {
  constexpr std::int64_t kTokens = 6, kExperts = 4, kChoices = 2, kN = 130;
  const kernels::Routing how{.tokens = kTokens, .experts = kExperts, .choices = kChoices};
  const std::vector<std::int32_t> ids{0, 3, 1, 0, 2, 3, 3, 1, 0, 2, 1, 2};
  const Both x(kTokens * kN, 1), dy(kTokens * kN, 2);
  const Floats gates = values(kTokens * kChoices, 3);
  std::vector<std::int32_t> counts(kExperts), next(kExperts);
  Floats rows(kTokens * kChoices * kN), y(kTokens * kN), drows(rows.size()), dgates(gates.size()), same(12);
  Halves rows_half(rows.size()), y_half(y.size()), drows_half(rows.size());
  kernels::dispatch(how, kN, x.wide.data(), ids.data(), rows.data(), counts.data(), next.data());
  kernels::dispatch(how, kN, x.half.data(), ids.data(), rows_half.data(), counts.data(), next.data());
  expect_rounded(rows_half, rows);
  for (const float* g : {gates.data(), static_cast<const float*>(nullptr)}) {
    kernels::combine(how, kN, rows.data(), ids.data(), g, y.data(), next.data());
    kernels::combine(how, kN, rows_half.data(), ids.data(), g, y_half.data(), next.data());
    expect_rounded(y_half, y);
  }
  kernels::combine_backward(how, kN, dy.wide.data(), rows.data(), ids.data(), gates.data(), drows.data(),
                            dgates.data(), next.data());
  kernels::combine_backward(how, kN, dy.half.data(), rows_half.data(), ids.data(), gates.data(),
                            drows_half.data(), same.data(), next.data());
  expect_rounded(drows_half, drows);
  EXPECT_EQ(same, dgates);
}

// The bound is |c - exact| <= 2^-8 |exact|, half of the last of 8 bits, plus float32's loss in a sum of k
// terms.
void expect_product(Trans ta, Trans tb, std::int64_t m, std::int64_t n, std::int64_t k, bool wide_a,
                    bool wide_c, float beta) {
  const bool at = ta == Trans::kYes, bt = tb == Trans::kYes;
  const std::int64_t lda = (at ? m : k) + 3, ldb = (bt ? k : n) + 2, ldc = n + 1;
  const Both a((at ? k : m) * lda, 1), b((bt ? n : k) * ldb, 2), before(m * ldc, 3);
  Both c = before;
  const kernels::ConstArray left = wide_a ? kernels::ConstArray(a.wide.data()) : a.half.data();
  const kernels::Array out = wide_c ? kernels::Array(c.wide.data()) : c.half.data();
  kernels::gemm(ta, tb, m, n, k, left, lda, b.half.data(), ldb, beta, out, ldc);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j <= n; ++j) {
      const auto place = static_cast<std::size_t>(i * ldc + j);
      const double got = static_cast<double>(wide_c ? c.wide[place] : kernels::to_float(c.half[place]));
      const auto had = static_cast<double>(before.wide[place]);
      if (j == n) {
        ASSERT_EQ(got, had) << "what lies between the rows";
        continue;
      }
      double exact = beta == 0 ? 0 : had, all = std::abs(exact);
      for (std::int64_t p = 0; p < k; ++p) {
        const double x = static_cast<double>(
                         a.wide[static_cast<std::size_t>(at ? p * lda + i : i * lda + p)]),
                     y = static_cast<double>(
                         b.wide[static_cast<std::size_t>(bt ? j * ldb + p : p * ldb + j)]);
        exact += x * y;
        all += std::abs(x * y);
      }
      const double bound = (wide_c ? 0 : 0x1p-8 * std::abs(exact)) + 1e-6 * all;
      ASSERT_LE(std::abs(got - exact), bound) << m << " x " << n << " x " << k << " at " << i << ", " << j;
    }
  }
}

// Sizes around the blocks of 192 rows and columns and of 256 terms.
TEST(Bfloat16Gemm, IsRoundedOnce) {
  struct Case {
    std::int64_t m, n, k;
  };
  for (const Case& c : {Case{5, 7, 3}, {1, 19, 23}, {193, 17, 65}, {3, 200, 300}, {12, 13, 600}, {4, 6, 0}})
    for (const Trans ta : {Trans::kNo, Trans::kYes})
      for (const Trans tb : {Trans::kNo, Trans::kYes})
        for (const bool wide_c : {false, true})
          for (const float beta : {0.0F, 1.0F}) {
            expect_product(ta, tb, c.m, c.n, c.k, false, wide_c, beta);
            expect_product(ta, tb, c.m, c.n, c.k, true, wide_c, beta);
          }
}

}  // namespace
}  // namespace hyperrun::testing
