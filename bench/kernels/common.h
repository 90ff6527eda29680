// Helpers of the kernels' benchmarks: the two models of the throughput numbers, and buffers of plausible
// values.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

namespace hyperrun::bench {

// One rank's share of a step.
struct Model {
  const char* name;
  std::int64_t dim, heads, ffn, vocab, seq, batch;
  std::int64_t rows() const { return seq * batch; }
  std::int64_t head_dim() const { return dim / heads; }
};

inline constexpr Model kSmall{"dim256", 256, 8, 704, 4096, 256, 2};
inline constexpr Model kLarge{"dim512", 512, 8, 1408, 4096, 512, 1};

inline const Model& model(const benchmark::State& state) { return state.range(0) == 256 ? kSmall : kLarge; }

// Values in [-0.5, 0.5), the same each run.
inline std::vector<float> values(std::int64_t n, std::uint32_t seed = 1) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) {
    seed = seed * 1664525U + 1013904223U;
    x = static_cast<float>(seed >> 8) * 0x1p-24F - 0.5F;
  }
  return v;
}

inline void report_flops(benchmark::State& state, double flops) {
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

inline void report_bytes(benchmark::State& state, double bytes) {
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace hyperrun::bench
