#include <cblas.h>

#include <chrono>

#include "bench/kernels/common.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::bench {
namespace {

using kernels::Trans;

void run_gemm(benchmark::State& state, Trans ta, Trans tb, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto a = values(m * k), b = values(k * n);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  for (auto _ : state) {
    kernels::gemm(ta, tb, m, n, k, a.data(), ta == Trans::kYes ? m : k, b.data(), tb == Trans::kYes ? k : n,
                  0, c.data(), n);
    benchmark::DoNotOptimize(c.data());
  }
  report_flops(state, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

void BM_Sgemm(benchmark::State& state) {
  run_gemm(state, Trans::kNo, Trans::kNo, state.range(0), state.range(0), state.range(0));
}
BENCHMARK(BM_Sgemm)->Arg(256)->Arg(1024)->MinTime(0.3);

void BM_ProjectionForward(benchmark::State& state) {
  const Model& m = model(state);
  run_gemm(state, Trans::kNo, Trans::kYes, m.rows(), m.dim, m.dim);
}
BENCHMARK(BM_ProjectionForward)->Arg(256)->Arg(512)->MinTime(0.2);

void BM_GateForward(benchmark::State& state) {
  const Model& m = model(state);
  run_gemm(state, Trans::kNo, Trans::kYes, m.rows(), 2 * m.ffn, m.dim);
}
BENCHMARK(BM_GateForward)->Arg(256)->Arg(512)->MinTime(0.2);

void BM_HeadForward(benchmark::State& state) {
  const Model& m = model(state);
  run_gemm(state, Trans::kNo, Trans::kYes, m.rows(), m.vocab, m.dim);
}
BENCHMARK(BM_HeadForward)->Arg(256)->Arg(512)->MinTime(0.2);

void BM_HeadWeightGradient(benchmark::State& state) {
  const Model& m = model(state);
  run_gemm(state, Trans::kYes, Trans::kNo, m.vocab, m.dim, m.rows());
}
BENCHMARK(BM_HeadWeightGradient)->Arg(256)->Arg(512)->MinTime(0.2);

void BM_OneRow(benchmark::State& state) {
  const Model& m = model(state);
  run_gemm(state, Trans::kNo, Trans::kYes, 1, m.vocab, m.dim);
}
BENCHMARK(BM_OneRow)->Arg(256)->Arg(512)->MinTime(0.1);

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Products of few rows, in turns with OpenBLAS' own, since a machine's speed changes from second to second.
// "over OpenBLAS" is how many times as fast gemm() is.
void run_few_rows(benchmark::State& state, Trans tb) {
  const Model& m = model(state);
  const std::int64_t rows = state.range(1), n = m.dim, k = m.dim;
  const auto a = values(rows * k), b = values(k * n);
  std::vector<float> c(static_cast<std::size_t>(rows * n));
  double ours = 0, of_openblas = 0;
  for (auto _ : state) {
    const double begin = seconds();
    kernels::gemm(Trans::kNo, tb, rows, n, k, a.data(), k, b.data(), n, 0, c.data(), n);
    benchmark::DoNotOptimize(c.data());
    const double between = seconds();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, tb == Trans::kYes ? CblasTrans : CblasNoTrans,
                static_cast<int>(rows), static_cast<int>(n), static_cast<int>(k), 1, a.data(),
                static_cast<int>(k), b.data(), static_cast<int>(n), 0, c.data(), static_cast<int>(n));
    benchmark::DoNotOptimize(c.data());
    ours += between - begin;
    of_openblas += seconds() - between;
  }
  state.counters["over OpenBLAS"] = of_openblas / ours;
}

void BM_FewRows(benchmark::State& state) { run_few_rows(state, Trans::kNo); }
BENCHMARK(BM_FewRows)->ArgsProduct({{256, 512}, {2, 3, 4, 6, 8, 11, 16, 24}})->MinTime(0.05);

void BM_FewRowsTransposed(benchmark::State& state) { run_few_rows(state, Trans::kYes); }
BENCHMARK(BM_FewRowsTransposed)->ArgsProduct({{256, 512}, {2, 3, 4, 6, 8, 11, 16, 24}})->MinTime(0.05);

}  // namespace
}  // namespace hyperrun::bench
