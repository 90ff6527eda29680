#include "runtime/plan/leader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/job_forecast.h"

namespace hyperrun {
namespace {

constexpr int kFewerLayers = 3;  // that a leader recomputes less where its forecast took too many
constexpr int kMoreTries = 4;    // of more layers where it took too few

// Its forecast may have taken too much for what it needs.
Leader with_fewer_deeper(const Job& base, Leader leader) {
  for (int fewer = 0; fewer < kFewerLayers && leader.strategy.deeper > 1; ++fewer) {
    Strategy s = leader.strategy;
    --s.deeper;
    Leader next = try_strategy(base, s, leader.forecast);
    if (next.simulated == 0 || next.simulated > leader.simulated) break;
    next.forecast.bound = next.forecast.bound_of_more;
    leader = std::move(next);
  }
  return leader;
}

// Placing leaves gaps that no forecast knows: one layer more says how much a layer saves, then as many as
// should do.
Leader with_more_deeper(const Job& base, const Space& space, Leader leader) {
  std::int32_t step = 1;
  for (int tries = 0; tries < kMoreTries && !leader.fits && next_after(leader.strategy.recompute); ++tries) {
    Strategy s = leader.strategy;
    const std::int32_t most = most_layers(s, base.model.layers) - 1;
    if (s.deeper >= most) break;
    step = std::min(step, most - s.deeper);
    s.deeper += step;
    if (!meets(space.only, s)) break;
    Leader next = try_strategy(base, s, leader.forecast);
    next.forecast.bound = next.forecast.bound_of_more;
    if (next.hbm.value == 0) break;  // the compiler refuses it
    const double saved = static_cast<double>((leader.hbm - next.hbm).value) / step;
    const auto missing = static_cast<double>((next.hbm - base.supernode.hbm).value);
    step = saved > 0 ? static_cast<std::int32_t>(
                           std::clamp(std::ceil(missing / saved), 1.0, static_cast<double>(most)))
                     : 2 * step;
    leader = std::move(next);
  }
  return leader;
}

}  // namespace

namespace {

// The parts add up to the step, up to rounding, as those of each device do.
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

// A plan of so many instructions takes some 500 MB of the planner's memory.
constexpr std::size_t kMostKept = 300'000;

std::size_t instructions(const Plan& plan) {
  std::size_t all = 0;
  for (const Role& role : plan.roles)
    for (const Program& program : role.programs) all += program.instrs.size();
  return all;
}

}  // namespace

Leader try_near(const Job& base, const Space& space, const Strategy& strategy, const Forecast& forecast,
                const Refusals& refusals) {
  Leader leader = try_strategy(base, strategy, forecast, refusals);
  const Bytes as_asked = leader.hbm;
  if (leader.simulated > 0 && strategy.deeper > 0) {
    leader = with_fewer_deeper(base, std::move(leader));
  } else if (!leader.fits && strategy.memory == PlanMemory::kNone) {
    leader = with_more_deeper(base, space, std::move(leader));
  }
  leader.hbm_as_asked = as_asked;
  // Where nothing had to move it is the strategy without a policy.
  Strategy unmoved = leader.strategy;
  unmoved.memory = PlanMemory::kNone;
  if (leader.simulated > 0 && leader.pool.value == 0 && meets(space.only, unmoved)) leader.strategy = unmoved;
  return leader;
}

Leader without_plan(Leader leader) {
  leader.plan.reset();
  return leader;
}

std::int64_t passes_of(const Job& base, const Strategy& strategy) {
  return std::int64_t{base.model.layers} * micro_batches(strategy, base.training.batch);
}

bool can_be_simulated(const Job& base, const Strategy& strategy, std::int64_t most_moved) {
  return passes_of(base, strategy) <= (strategy.memory == PlanMemory::kNone ? kMostPasses : most_moved);
}

Leader try_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast,
                    const Refusals& refusals) try {
  if (!can_be_simulated(base, strategy)) {
    Leader leader{.strategy = strategy, .forecast = forecast};
    leader.micro_batches = micro_batches(strategy, base.training.batch);
    leader.why_not = "its step is too large to be simulated: " + std::to_string(leader.micro_batches) +
                     " micro-batches through " + std::to_string(base.model.layers) + " layers";
    return leader;
  }
  Leader leader = try_job(job_of(base, strategy), refusals);
  leader.strategy = strategy, leader.forecast = forecast;
  return leader;
} catch (const Error& e) {
  throw Error(e.code(), e.cause() + ", of the strategy " + words(strategy)).at(e.place()).fix(e.remedy());
}

Leader try_job(const Job& job, const Refusals& refusals) {
  Leader leader;
  leader.micro_batches = job.training.micro_batches;
  try {
    Compiled compiled = compile(job, nullptr, refusals);
    leader.hbm = leader.hbm_as_asked = compiled.plan.peak();
    leader.pool = compiled.plan.of_all_devices(Tier::kPool);
    check_fits(compiled.plan, job.supernode);
    const Topology topology = hosts_of(machine_of(job.supernode), job.supernode.devices);
    const JobForecast f = hyperrun::forecast(job, compiled.plan, topology);
    leader.simulated = static_cast<double>(f.step.value);
    leader.mfu = f.mfu;
    leader.fusion = fusion_of(compiled.plan, job.supernode);
    if (instructions(compiled.plan) <= kMostKept)
      leader.plan = std::make_shared<const Plan>(std::move(compiled.plan));
    leader.parts = mean_parts(f.train);
    leader.busiest = *std::ranges::max_element(f.train.parts, {}, &Breakdown::compute);
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    leader.why_not = e.cause();
    leader.fits = e.code() != Code::kDoesNotFit;
  }
  return leader;
}

}  // namespace hyperrun
