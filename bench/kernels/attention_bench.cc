// Attention; it is causal unless "Whole" says that queries see all keys. "Useful" operations are those of the
// causal triangle, i keys for query i, or of the whole square: 4 per key, query and head_dim forward, 8
// backward (its four products; recomputed scores do not count). Beside it, the way without recomputation:
// sgemm on blocks of 64 queries, with all probabilities kept for the backward pass; and its products alone.
#include <cblas.h>

#include <cmath>
#include <cstring>

#include "bench/kernels/common.h"
#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/cross_entropy.h"
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::bench {
namespace {

kernels::AttentionShape shape_of(const Model& m, std::int64_t group, bool causal) {
  return {.batch = m.batch,
          .seq = m.seq,
          .heads = m.heads,
          .kv_heads = m.heads / group,
          .head_dim = m.head_dim(),
          .causal = causal};
}

double useful_flops(const Model& m, double products, bool causal = true) {
  const auto seq = static_cast<double>(m.seq);
  const double pairs = causal ? 0.5 * seq * (seq + 1) : seq * seq;
  return 2.0 * products * pairs * static_cast<double>(m.batch * m.heads * m.head_dim());
}

struct Tensors {
  explicit Tensors(const Model& m, std::int64_t group = 1)
      : q(values(m.rows() * m.dim, 1)),
        k(values(m.rows() * m.dim / group, 2)),
        v(values(m.rows() * m.dim / group, 3)),
        d_o(values(m.rows() * m.dim, 4)),
        o(q.size()),
        dq(q.size()),
        dk(k.size()),
        dv(k.size()),
        lse(static_cast<std::size_t>(m.batch * m.heads * m.seq)) {}
  std::vector<float> q, k, v, d_o, o, dq, dk, dv, lse;
};

void forward(benchmark::State& state, std::int64_t group, bool causal = true) {
  const Model& m = model(state);
  const auto shape = shape_of(m, group, causal);
  Tensors t(m, group);
  std::vector<char> scratch(static_cast<std::size_t>(kernels::attention_scratch_bytes(shape)));
  for (auto _ : state) {
    kernels::attention(shape, t.q.data(), t.k.data(), t.v.data(), t.o.data(), t.lse.data(), scratch.data());
    benchmark::ClobberMemory();
  }
  report_flops(state, useful_flops(m, 2, causal));
}

void backward(benchmark::State& state, std::int64_t group, bool causal = true) {
  const Model& m = model(state);
  const auto shape = shape_of(m, group, causal);
  Tensors t(m, group);
  std::vector<char> scratch(static_cast<std::size_t>(
      std::max(kernels::attention_scratch_bytes(shape), kernels::attention_backward_scratch_bytes(shape))));
  kernels::attention(shape, t.q.data(), t.k.data(), t.v.data(), t.o.data(), t.lse.data(), scratch.data());
  for (auto _ : state) {
    kernels::attention_backward(shape, t.q.data(), t.k.data(), t.v.data(), t.o.data(), t.lse.data(),
                                t.d_o.data(), t.dq.data(), t.dk.data(), t.dv.data(), scratch.data());
    benchmark::ClobberMemory();
  }
  report_flops(state, useful_flops(m, 4, causal));
}

void BM_AttentionForward(benchmark::State& state) { forward(state, 1); }
BENCHMARK(BM_AttentionForward)->Arg(256)->Arg(512)->MinTime(0.3);
void BM_AttentionForwardGrouped4(benchmark::State& state) { forward(state, 4); }
BENCHMARK(BM_AttentionForwardGrouped4)->Arg(256)->Arg(512)->MinTime(0.3);
void BM_AttentionBackward(benchmark::State& state) { backward(state, 1); }
BENCHMARK(BM_AttentionBackward)->Arg(256)->Arg(512)->MinTime(0.3);
void BM_AttentionBackwardGrouped4(benchmark::State& state) { backward(state, 4); }
BENCHMARK(BM_AttentionBackwardGrouped4)->Arg(256)->Arg(512)->MinTime(0.3);

void BM_AttentionForwardWhole(benchmark::State& state) { forward(state, 1, false); }
BENCHMARK(BM_AttentionForwardWhole)->Arg(256)->Arg(512)->MinTime(0.3);
void BM_AttentionBackwardWhole(benchmark::State& state) { backward(state, 1, false); }
BENCHMARK(BM_AttentionBackwardWhole)->Arg(256)->Arg(512)->MinTime(0.3);

constexpr std::int64_t kRows = 64;

void sgemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, std::int64_t m, std::int64_t n, std::int64_t k,
           const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
           std::int64_t ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0F, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}

// The softmax of row r over its first r + 1 keys; zeros up to the end of the block.
void softmax_block(std::int64_t first, std::int64_t end, std::int64_t seq, float* p) {
  const std::int32_t no_target = -1;
  for (std::int64_t r = first; r < end; ++r) {
    float* row = p + r * seq;
    float max = 0, sum = 0, target = 0;
    kernels::softmax_stats(1, r + 1, 0, &no_target, row, &max, &sum, &target);
    kernels::scale(r + 1, 1.0F / sum, row);
    std::memset(row + r + 1, 0, static_cast<std::size_t>(end - r - 1) * sizeof(float));
  }
}

// The forward pass with `softmax`, or its two products alone.
void kept_forward(const Model& m, Tensors& t, std::vector<float>& probabilities, bool softmax = true) {
  const std::int64_t hd = m.head_dim(), seq = m.seq, d = m.dim;
  for (std::int64_t bh = 0; bh < m.batch * m.heads; ++bh) {
    const std::int64_t at = bh / m.heads * seq * d + bh % m.heads * hd;
    float* p = probabilities.data() + bh * seq * seq;
    for (std::int64_t r = 0; r < seq; r += kRows) {
      const std::int64_t end = r + kRows;
      sgemm(CblasNoTrans, CblasTrans, kRows, end, hd, t.q.data() + at + r * d, d, t.k.data() + at, d, 0,
            p + r * seq, seq);
      if (softmax) softmax_block(r, end, seq, p);
      sgemm(CblasNoTrans, CblasNoTrans, kRows, hd, end, p + r * seq, seq, t.v.data() + at, d, 0,
            t.o.data() + at + r * d, d);
    }
  }
}

// Turns dp into p (dp - p . dp), as fast as the compiler makes it.
void softmax_gradient(std::int64_t n, const float* p, float* dp) {
  float dot[16] = {};
  for (std::int64_t i = 0; i < n; i += 16) {
    for (int j = 0; j < 16; ++j) dot[j] += p[i + j] * dp[i + j];
  }
  float mean = 0;
  for (const float x : dot) mean += x;
  for (std::int64_t i = 0; i < n; ++i) dp[i] = p[i] * (dp[i] - mean);
}

void kept_forward_bench(benchmark::State& state, bool softmax) {
  const Model& m = model(state);
  Tensors t(m);
  std::vector<float> p(static_cast<std::size_t>(m.batch * m.heads * m.seq * m.seq));
  for (auto _ : state) {
    kept_forward(m, t, p, softmax);
    benchmark::ClobberMemory();
  }
  report_flops(state, useful_flops(m, 2));
}
void BM_KeptForward(benchmark::State& state) { kept_forward_bench(state, true); }
BENCHMARK(BM_KeptForward)->Arg(256)->Arg(512)->MinTime(0.3);

void BM_PlainProductsForward(benchmark::State& state) { kept_forward_bench(state, false); }
BENCHMARK(BM_PlainProductsForward)->Arg(256)->Arg(512)->MinTime(0.3);

void kept_backward_bench(benchmark::State& state, bool softmax) {
  const Model& m = model(state);
  const std::int64_t hd = m.head_dim(), seq = m.seq, d = m.dim;
  Tensors t(m);
  std::vector<float> kept(static_cast<std::size_t>(m.batch * m.heads * seq * seq));
  std::vector<float> dp(static_cast<std::size_t>(kRows * seq));
  kept_forward(m, t, kept);
  for (auto _ : state) {
    for (std::int64_t bh = 0; bh < m.batch * m.heads; ++bh) {
      const std::int64_t at = bh / m.heads * seq * d + bh % m.heads * hd;
      for (std::int64_t r = seq - kRows; r >= 0; r -= kRows) {
        const std::int64_t end = r + kRows, row = at + r * d;
        const float beta = end == seq ? 0 : 1;
        const float* p = kept.data() + (bh * seq + r) * seq;
        sgemm(CblasNoTrans, CblasTrans, kRows, end, hd, t.d_o.data() + row, d, t.v.data() + at, d, 0,
              dp.data(), seq);
        for (std::int64_t i = 0; softmax && i < kRows; ++i)
          softmax_gradient(end, p + i * seq, dp.data() + i * seq);
        sgemm(CblasTrans, CblasNoTrans, end, hd, kRows, p, seq, t.d_o.data() + row, d, beta, t.dv.data() + at,
              d);
        sgemm(CblasNoTrans, CblasNoTrans, kRows, hd, end, dp.data(), seq, t.k.data() + at, d, 0,
              t.dq.data() + row, d);
        sgemm(CblasTrans, CblasNoTrans, end, hd, kRows, dp.data(), seq, t.q.data() + row, d, beta,
              t.dk.data() + at, d);
      }
    }
    benchmark::ClobberMemory();
  }
  report_flops(state, useful_flops(m, 4));
}
void BM_KeptBackward(benchmark::State& state) { kept_backward_bench(state, true); }
BENCHMARK(BM_KeptBackward)->Arg(256)->Arg(512)->MinTime(0.3);

void BM_PlainProductsBackward(benchmark::State& state) { kept_backward_bench(state, false); }
BENCHMARK(BM_PlainProductsBackward)->Arg(256)->Arg(512)->MinTime(0.3);

}  // namespace
}  // namespace hyperrun::bench
