// Every kernel that is no matrix product. GB/s counts each array once per read and once per write.
#include "bench/kernels/common.h"
#include "runtime/device/kernels/cross_entropy.h"
#include "runtime/device/kernels/elementwise.h"
#include "runtime/device/kernels/norm.h"
#include "runtime/device/kernels/optimizer.h"
#include "runtime/device/kernels/random.h"
#include "runtime/device/kernels/rope.h"
#include "runtime/device/kernels/swiglu.h"

namespace hyperrun::bench {
namespace {

double bytes(std::int64_t floats) { return 4.0 * static_cast<double>(floats); }

template <class Pass>
void run(benchmark::State& state, double moved, Pass pass) {
  for (auto _ : state) {
    pass();
    benchmark::ClobberMemory();
  }
  report_bytes(state, moved);
}

void BM_RmsNorm(benchmark::State& state) {
  const Model& m = model(state);
  const auto x = values(m.rows() * m.dim), w = values(m.dim);
  std::vector<float> y(x.size()), squares(static_cast<std::size_t>(m.rows()));
  const kernels::NormShape shape{.rows = m.rows(), .width = m.dim, .whole = m.dim, .eps = 1e-5F};
  run(state, bytes(3 * m.rows() * m.dim), [&] {
    kernels::row_squares(shape, x.data(), nullptr, squares.data());
    kernels::norm(shape, x.data(), w.data(), squares.data(), nullptr, nullptr, y.data());
  });
}

void BM_RmsNormBackward(benchmark::State& state) {
  const Model& m = model(state);
  const auto x = values(m.rows() * m.dim), w = values(m.dim), dy = values(m.rows() * m.dim, 2);
  auto dx = values(m.rows() * m.dim, 3), dw = values(m.dim);
  const std::vector<float> squares(static_cast<std::size_t>(m.rows()), 1.0F);
  std::vector<float> dots(squares.size());
  const kernels::NormShape shape{.rows = m.rows(), .width = m.dim, .whole = m.dim, .eps = 1e-5F};
  run(state, bytes(6 * m.rows() * m.dim), [&] {
    kernels::norm_dots(shape, dy.data(), x.data(), w.data(), nullptr, dots.data(), nullptr);
    kernels::norm_backward(shape, dy.data(), x.data(), w.data(), {squares.data(), dots.data()}, {}, dx.data(),
                           dx.data(), dw.data(), false);
  });
}

void BM_Rope(benchmark::State& state) {
  const Model& m = model(state);
  auto x = values(m.rows() * m.dim);
  std::vector<float> table(static_cast<std::size_t>(m.seq * m.head_dim()));
  const std::vector<double> slow(static_cast<std::size_t>(m.head_dim() / 2), 0.1);  // any frequencies
  kernels::rope_table(0, m.seq, slow, table.data());
  run(state, bytes(2 * m.rows() * m.dim), [&] {
    kernels::rope(kernels::Rotate::kForward, m.rows(), m.seq, m.heads, m.head_dim(), x.data(), m.dim,
                  table.data(), x.data(), m.dim);
  });
}

void BM_Swiglu(benchmark::State& state) {
  const Model& m = model(state);
  const auto gu = values(2 * m.rows() * m.ffn);
  std::vector<float> h(gu.size() / 2);
  run(state, bytes(3 * m.rows() * m.ffn),
      [&] { kernels::swiglu(m.rows(), m.ffn, gu.data(), gu.data() + m.ffn, 2 * m.ffn, h.data()); });
}

void BM_SwigluBackward(benchmark::State& state) {
  const Model& m = model(state);
  const auto gu = values(2 * m.rows() * m.ffn), dh = values(m.rows() * m.ffn);
  std::vector<float> out(gu.size());
  run(state, bytes(5 * m.rows() * m.ffn), [&] {
    kernels::swiglu_backward(m.rows(), m.ffn, gu.data(), gu.data() + m.ffn, 2 * m.ffn, dh.data(), out.data(),
                             out.data() + m.ffn);
  });
}

void BM_SoftmaxStats(benchmark::State& state) {
  const Model& m = model(state);
  auto logits = values(m.rows() * m.vocab);
  const std::vector<std::int32_t> targets(static_cast<std::size_t>(m.rows()), 7);
  std::vector<float> max(targets.size()), sum(targets.size()), target(targets.size());
  run(state, bytes(2 * m.rows() * m.vocab), [&] {
    kernels::softmax_stats(m.rows(), m.vocab, 0, targets.data(), logits.data(), max.data(), sum.data(),
                           target.data());
  });
}

void BM_CrossEntropyBackward(benchmark::State& state) {
  const Model& m = model(state);
  auto e = values(m.rows() * m.vocab);
  const std::vector<std::int32_t> targets(static_cast<std::size_t>(m.rows()), 7);
  const std::vector<float> max(targets.size(), 0.0F), sum(targets.size(), 1.0F);
  run(state, bytes(2 * m.rows() * m.vocab), [&] {
    kernels::cross_entropy_backward(m.rows(), m.vocab, 0, targets.data(), max.data(), max.data(), sum.data(),
                                    1.0F, e.data());
  });
}

void BM_Accumulate(benchmark::State& state) {
  const auto b = values(state.range(0));
  auto a = values(state.range(0), 2);
  run(state, bytes(3 * state.range(0)), [&] { kernels::accumulate(state.range(0), b.data(), a.data()); });
}

void BM_SumSquares(benchmark::State& state) {
  const auto a = values(state.range(0));
  float sum = 0;
  run(state, bytes(state.range(0)), [&] {
    sum = kernels::sum_squares(state.range(0), a.data());
    benchmark::DoNotOptimize(sum);
  });
}

void BM_Exp(benchmark::State& state) {
  const auto x = values(state.range(0));
  std::vector<float> y(x.size());
  run(state, bytes(2 * state.range(0)), [&] { kernels::exp(state.range(0), x.data(), y.data()); });
}

void BM_ToBf16(benchmark::State& state) {
  const auto x = values(state.range(0));
  std::vector<kernels::Bf16> y(x.size());
  run(state, 1.5 * bytes(state.range(0)), [&] { kernels::convert(state.range(0), x.data(), y.data()); });
}

void BM_AdamW(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const auto g = values(n);
  auto w = values(n, 2), m = values(n, 3);
  std::vector<float> v(w.size(), 0.01F);
  run(state, bytes(7 * n), [&] {
    kernels::adamw(n, {.lr = 1e-9F, .weight_decay = 0.1F}, g.data(), w.data(), m.data(), v.data());
  });
}

void BM_FillNormal(benchmark::State& state) {
  const std::int64_t n = state.range(0), zero = 0;
  std::vector<float> w(static_cast<std::size_t>(n));
  run(state, bytes(n), [&] {
    kernels::fill_normal(1, 2, 0.02F, {.global = {&n, 1}, .offset = {&zero, 1}, .local = {&n, 1}}, w.data());
  });
}

BENCHMARK(BM_RmsNorm)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_RmsNormBackward)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_Rope)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_Swiglu)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_SwigluBackward)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_SoftmaxStats)->Arg(256)->Arg(512)->MinTime(0.1);
BENCHMARK(BM_CrossEntropyBackward)->Arg(256)->Arg(512)->MinTime(0.1);
// Arrays that fit the cache, and as large as the parameters of the dim512 model.
BENCHMARK(BM_Accumulate)->Arg(1 << 14)->Arg(1 << 24)->MinTime(0.1);
BENCHMARK(BM_SumSquares)->Arg(1 << 14)->Arg(1 << 24)->MinTime(0.1);
BENCHMARK(BM_Exp)->Arg(1 << 14)->MinTime(0.1);
BENCHMARK(BM_ToBf16)->Arg(1 << 14)->Arg(1 << 24)->MinTime(0.1);
BENCHMARK(BM_AdamW)->Arg(1 << 14)->Arg(1 << 24)->MinTime(0.1);
BENCHMARK(BM_FillNormal)->Arg(1 << 20)->MinTime(0.1);

}  // namespace
}  // namespace hyperrun::bench
