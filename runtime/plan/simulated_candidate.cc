#include "runtime/plan/simulated_candidate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {
namespace {

constexpr int kMostFewerLayers = 3;  // extra layers that are taken away again
constexpr int kMoreTries = 4;        // attempts with more extra layers

// Tries fewer extra recomputing layers, as the forecast may have been too high.
SimulatedCandidate with_fewer_extra(const Job& base, SimulatedCandidate candidate) {
  for (int fewer = 0; fewer < kMostFewerLayers && candidate.strategy.extra_recompute_layers > 1; ++fewer) {
    Strategy s = candidate.strategy;
    --s.extra_recompute_layers;
    SimulatedCandidate next = simulate_strategy(base, s, candidate.forecast);
    if (next.simulated == 0 || next.simulated > candidate.simulated) break;
    next.forecast.bound = next.forecast.bound_with_extra;
    candidate = std::move(next);
  }
  return candidate;
}

// Tries more extra recomputing layers, as placement leaves gaps that a forecast does not know. One more layer
// tells how much each saves; then the number that should suffice is tried.
SimulatedCandidate with_more_extra(const Job& base, const Space& space, SimulatedCandidate candidate) {
  std::int32_t step = 1;
  for (int tries = 0;
       tries < kMoreTries && !candidate.fits && stronger_recompute(candidate.strategy.recompute); ++tries) {
    Strategy s = candidate.strategy;
    const std::int32_t most = most_layers(s, base.model.layers) - 1;
    if (s.extra_recompute_layers >= most) break;
    step = std::min(step, most - s.extra_recompute_layers);
    s.extra_recompute_layers += step;
    if (!meets(space.only, s)) break;
    SimulatedCandidate next = simulate_strategy(base, s, candidate.forecast);
    next.forecast.bound = next.forecast.bound_with_extra;
    if (next.hbm.value == 0) break;  // refused by the compiler
    const double saved = static_cast<double>((candidate.hbm - next.hbm).value) / step;
    const auto missing = static_cast<double>((next.hbm - base.supernode.hbm).value);
    step = saved > 0 ? static_cast<std::int32_t>(
                           std::clamp(std::ceil(missing / saved), 1.0, static_cast<double>(most)))
                     : 2 * step;
    candidate = std::move(next);
  }
  return candidate;
}

}  // namespace

namespace {

// Mean breakdown over devices. Like those of each device, its parts add up to the step, except for rounding.
Breakdown mean_parts(const SimResult& result) {
  const auto mean = [&](Nanos Breakdown::*part) {
    double sum = 0;
    for (const int c : result.class_of)
      sum += static_cast<double>((result.parts[static_cast<std::size_t>(c)].*part).value);
    return Nanos(std::llround(sum / static_cast<double>(result.class_of.size())));
  };
  return {mean(&Breakdown::compute), mean(&Breakdown::optimizer), mean(&Breakdown::communication),
          mean(&Breakdown::transfer), mean(&Breakdown::bubble)};
}

// Instructions of a plan that is kept, some 500 MB.
constexpr std::size_t kMostKept = 300'000;

std::size_t instructions(const Plan& plan) {
  std::size_t all = 0;
  for (const Role& role : plan.roles)
    for (const Program& program : role.programs) all += program.instrs.size();
  return all;
}

}  // namespace

SimulatedCandidate simulate_or_repair(const Job& base, const Space& space, const Strategy& strategy,
                                      const Forecast& forecast, const Refusals& refusals) {
  SimulatedCandidate candidate = simulate_strategy(base, strategy, forecast, refusals);
  const Bytes as_asked = candidate.hbm;
  if (candidate.simulated > 0 && strategy.extra_recompute_layers > 0) {
    candidate = with_fewer_extra(base, std::move(candidate));
  } else if (!candidate.fits && strategy.memory == PlanMemory::kNone) {
    candidate = with_more_extra(base, space, std::move(candidate));
  }
  candidate.hbm_before_repair = as_asked;
  // If nothing had to move, the strategy is one without offloading.
  Strategy resident = candidate.strategy;
  resident.memory = PlanMemory::kNone;
  if (candidate.simulated > 0 && candidate.pool.value == 0 && meets(space.only, resident))
    candidate.strategy = resident;
  return candidate;
}

SimulatedCandidate without_plan(SimulatedCandidate candidate) {
  candidate.plan.reset();
  return candidate;
}

std::int64_t layer_passes(const Job& base, const Strategy& strategy) {
  return std::int64_t{base.model.layers} * micro_batches(strategy, base.training.batch);
}

bool can_be_simulated(const Job& base, const Strategy& strategy, std::int64_t most_offloaded) {
  return layer_passes(base, strategy) <=
         (strategy.memory == PlanMemory::kNone ? kMostPasses : most_offloaded);
}

SimulatedCandidate simulate_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast,
                                     const Refusals& refusals) try {
  if (!can_be_simulated(base, strategy)) {
    SimulatedCandidate candidate{.strategy = strategy, .forecast = forecast};
    candidate.micro_batches = micro_batches(strategy, base.training.batch);
    candidate.why_not =
        fmt::format("its step is too large to be simulated: {} micro-batches through {} layers",
                    candidate.micro_batches, base.model.layers);
    return candidate;
  }
  SimulatedCandidate candidate = simulate_job(job_of(base, strategy), refusals);
  candidate.strategy = strategy, candidate.forecast = forecast;
  return candidate;
} catch (const Error& e) {
  throw Error(e.code(), e.cause() + ", of the strategy " + describe(strategy)).at(e.place()).fix(e.remedy());
}

SimulatedCandidate simulate_job(const Job& job, const Refusals& refusals) {
  SimulatedCandidate candidate;
  candidate.micro_batches = job.training.micro_batches;
  try {
    Compiled compiled = compile(job, nullptr, refusals);
    candidate.hbm = candidate.hbm_before_repair = compiled.plan.peak();
    candidate.pool = compiled.plan.of_all_devices(Tier::kPool);
    check_fits(compiled.plan, job.supernode);
    const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
    const JobForecast f = hyperrun::forecast(job, compiled.plan, topology);
    candidate.simulated = static_cast<double>(f.step.value);
    candidate.mfu = f.mfu;
    candidate.fusion = fusion_of(compiled.plan, job.supernode);
    if (instructions(compiled.plan) <= kMostKept)
      candidate.plan = std::make_shared<const Plan>(std::move(compiled.plan));
    candidate.parts = mean_parts(f.train);
    candidate.busiest = *std::ranges::max_element(f.train.parts, {}, &Breakdown::compute);
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    candidate.why_not = e.cause();
    candidate.fits = e.code() != Code::kDoesNotFit;
  }
  return candidate;
}

}  // namespace hyperrun
