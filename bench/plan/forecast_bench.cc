// Strategies a second that the closed form forecasts, and bounds, on one core. Measured on a sample of all
// strategies on 2,048 dies whose profiles are cached, as they are for most strategies of a search.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "runtime/plan/forecaster.h"
#include "runtime/plan/layer_profile_cache.h"
#include "runtime/plan/space.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

constexpr int kOneIn = 9973;  // sampling interval; a prime, so that every value of every dimension appears

Job job_of(const std::string& model) {
  return parse_job("supernode { devices: 2048 profile: \"matrix384\" } model { " + model +
                       " sequence: 4096 } data { corpus: \"none.txt\" }\n"
                       "training { steps: 1 batch: 1024 lr: 1e-4 precision: \"bfloat16\" }",
                   "forecast_bench.textproto", JobUse::kToBePlanned)
      .job;
}

Job dense() { return job_of("layers: 96 hidden: 16384 heads: 128 kv_heads: 16 ffn: 49152 vocab: 128256"); }

Job mixtral() {
  return job_of(
      "name: \"mixtral\" layers: 56 hidden: 6144 heads: 48 kv_heads: 8 vocab: 32768\n"
      "experts { count: 8 choices: 2 ffn: 16384 capacity { factor: 1.25 } }");
}

std::vector<Strategy> some_of(const Job& job) {
  std::vector<Strategy> list;
  int next = 0;
  each_strategy(job, spaces().front(), [&](const Strategy& s) {
    if (next++ % kOneIn == 0) list.push_back(s);
  });
  return list;
}

void forecast(benchmark::State& state, Job (*job_of_model)()) {
  const Job job = job_of_model();
  Forecaster forecaster(job, spaces().front());
  std::vector<Strategy> strategies = some_of(job);
  std::erase_if(strategies, [&](const Strategy& s) { return !forecaster.forecast_of(s); });
  for (auto _ : state)
    for (const Strategy& s : strategies) benchmark::DoNotOptimize(forecaster.forecast_of(s));
  state.SetItemsProcessed(state.iterations() * std::ssize(strategies));
}

void bound(benchmark::State& state, Job (*job_of_model)()) {
  const Job job = job_of_model();
  LayerProfileCache cache(job);
  std::vector<Strategy> strategies = some_of(job);
  std::erase_if(strategies, [&](const Strategy& s) { return cache.bound_profile(s) == nullptr; });
  for (auto _ : state)
    for (const Strategy& s : strategies)
      benchmark::DoNotOptimize(closed_form_bound(s, job.model, micro_batches(s, job.training.batch),
                                                 {.base = cache.bound_profile(s)}));
  state.SetItemsProcessed(state.iterations() * std::ssize(strategies));
}

BENCHMARK_CAPTURE(forecast, dense, dense)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(forecast, mixtral, mixtral)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bound, dense, dense)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bound, mixtral, mixtral)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hyperrun
