// Products of experts beside one plain product of the same number of operations and rows: the cost of uneven
// and small groups. Rows are dealt out unevenly, the last expert with seven times as many as the first.
#include <cstring>
#include <numeric>

#include "bench/kernels/common.h"
#include "runtime/device/kernels/experts.h"
#include "runtime/device/kernels/gemm.h"

namespace hyperrun::bench {
namespace {

constexpr std::int64_t kExperts = 8, kHidden = 512, kFfn = 704;

std::vector<std::int32_t> uneven(std::int64_t rows) {
  std::vector<std::int32_t> counts(kExperts);
  for (std::int64_t e = 0; e < kExperts; ++e)
    counts[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(rows * (4 + 3 * e) / (8 * 14 + 4));
  counts.back() += static_cast<std::int32_t>(rows - std::accumulate(counts.begin(), counts.end(), 0));
  return counts;
}

double flops(std::int64_t rows) { return 2.0 * static_cast<double>(rows) * kHidden * kFfn; }

void grouped(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const auto x = values(rows * kHidden, 1), w = values(kExperts * kFfn * kHidden, 2);
  const auto counts = uneven(rows);
  std::vector<float> y(static_cast<std::size_t>(rows * kFfn));
  for (auto _ : state) {
    kernels::grouped_gemm(true, kFfn, kHidden, {counts.data(), kExperts}, x.data(), w.data(), false,
                          y.data());
    benchmark::ClobberMemory();
  }
  report_flops(state, flops(rows));
}

void plain(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const auto x = values(rows * kHidden, 1), w = values(kFfn * kHidden, 2);
  std::vector<float> y(static_cast<std::size_t>(rows * kFfn));
  for (auto _ : state) {
    kernels::gemm(kernels::Trans::kNo, kernels::Trans::kYes, rows, kFfn, kHidden, x.data(), kHidden, w.data(),
                  kHidden, 0.0F, y.data(), kFfn);
    benchmark::ClobberMemory();
  }
  report_flops(state, flops(rows));
}

void outer(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const auto dy = values(rows * kFfn, 1), x = values(rows * kHidden, 2);
  const auto counts = uneven(rows);
  std::vector<float> dw(static_cast<std::size_t>(kExperts * kFfn * kHidden));
  for (auto _ : state) {
    kernels::grouped_outer(kFfn, kHidden, {counts.data(), kExperts}, dy.data(), x.data(), true, dw.data());
    benchmark::ClobberMemory();
  }
  report_flops(state, flops(rows));
}

BENCHMARK(grouped)->Name("experts/forward")->Arg(1024)->Arg(4096);
BENCHMARK(outer)->Name("experts/weights")->Arg(1024)->Arg(4096);
BENCHMARK(plain)->Name("experts/plain_product")->Arg(1024)->Arg(4096);

}  // namespace
}  // namespace hyperrun::bench
