// A simulated candidate: a strategy that was compiled, placed and simulated event by event, or refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/units.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/job.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/fusion.h"
#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"
#include "runtime/sim/breakdown.h"

namespace hyperrun {

// Passes of micro-batches through layers in a step.
std::int64_t layer_passes(const Job& base, const Strategy& strategy);

// Limits of what is simulated. kMostPasses is some ten million instructions and ten to twenty GB. Planning
// transfers takes minutes far below that.
inline constexpr std::int64_t kMostPasses = 1 << 16, kMostOffloadedPasses = 1 << 13;
// Limit with offloading while others fit and stages may be interleaved. Planning takes many minutes beyond
// it, and interleaved stages gain little from offloading.
inline constexpr std::int64_t kFewOffloadedPasses = kMostOffloadedPasses / 4;
inline constexpr std::int64_t kQuickPasses = 128;  // limit of simulations beside the search
bool can_be_simulated(const Job& base, const Strategy& strategy,
                      std::int64_t most_offloaded = kMostOffloadedPasses);

// A compiled and simulated strategy, or the reason why it was refused.
struct SimulatedCandidate {
  Strategy strategy;
  Forecast forecast;  // of time 0: none was made
  std::int32_t micro_batches = 1;
  double simulated = 0;       // step time, ns; 0: refused
  Bytes hbm{}, pool{};        // fullest device; all devices together; known even if it does not fit
  Bytes hbm_before_repair{};  // of the requested strategy, before simulate_or_repair() changed it
  double mfu = 0;
  Breakdown parts;    // mean over devices of a step
  Breakdown busiest;  // the device that computes longest
  Fusion fusion;      // uses of the axes, if it fits
  // The compiled plan, unless it is too large. Whoever keeps many candidates should drop it.
  std::shared_ptr<const Plan> plan;
  std::string why_not;  // reason of the refusal; else empty
  bool fits = true;     // false: refused for memory
};

inline constexpr std::size_t kKeptPlans = 5;  // plans are kept for the first leaders only
// The candidate without its plan, which saves memory.
SimulatedCandidate without_plan(SimulatedCandidate candidate);

// Compiles and simulates a job as it is; strategy and forecast are defaults. A hopeless job may be refused
// without memory figures, if `refusals` allow.
SimulatedCandidate simulate_job(const Job& job, const Refusals& refusals = {});

// Compiles and simulates a strategy.
SimulatedCandidate simulate_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast,
                                     const Refusals& refusals = {});

// Compiles and simulates a strategy that should fit by its forecast, and repairs it. If it does not fit, more
// layers recompute, as many as the savings of the first suggest. If it fits with extra layers, some fewer are
// tried.
SimulatedCandidate simulate_or_repair(const Job& base, const Space& space, const Strategy& strategy,
                                      const Forecast& forecast, const Refusals& refusals = {});

}  // namespace hyperrun
