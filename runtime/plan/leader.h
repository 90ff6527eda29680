// A strategy that is compiled, placed and simulated event by event.
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

// Times that a step goes through a layer, of all its micro-batches.
std::int64_t passes_of(const Job& base, const Strategy& strategy);

// More would take the planner's own memory (some ten million instructions, ten to twenty GB). To plan
// transfers takes minutes of much less.
inline constexpr std::int64_t kMostPasses = 1 << 16, kMostMovedPasses = 1 << 13;
// Of leaders with transfers where others fit and stages may be interleaved: of more passes planning takes
// many minutes, and interleaved ones keep little of what they promise.
inline constexpr std::int64_t kFewMovedPasses = kMostMovedPasses / 4;
inline constexpr std::int64_t kPassesInAMoment = 128;  // of what is simulated beside what was asked for
bool can_be_simulated(const Job& base, const Strategy& strategy, std::int64_t most_moved = kMostMovedPasses);

// A strategy that was compiled and simulated, or refused then.
struct Leader {
  Strategy strategy;
  Forecast forecast;  // of time 0: none was made
  std::int32_t micro_batches = 1;
  double simulated = 0;  // ns of a step; 0: refused
  Bytes hbm{}, pool{};   // the fullest device's, and of all devices together; of what does not fit as well
  Bytes hbm_as_asked{};  // of the strategy that was asked for, where try_near() has tried others
  double mfu = 0;
  Breakdown parts;    // of a step, the mean of all devices
  Breakdown busiest;  // the same of the device that computes longest
  Fusion fusion;      // what its axes are used for, where it fits
  // As it was compiled, where that is not too large to be kept; whoever keeps many leaders lets go of it.
  std::shared_ptr<const Plan> plan;
  std::string why_not;  // it was refused,
  bool fits = true;     // for another reason than that it does not fit
};

inline constexpr std::size_t kKeptPlans = 5;  // of the leaders of a search, the first
// For those who keep many leaders.
Leader without_plan(Leader leader);

// Compiles and simulates a job as it is; its strategy and forecast are of no meaning. What is hopeless and
// refused says nothing of what it takes.
Leader try_job(const Job& job, const Refusals& refusals = {});

// The same of a strategy.
Leader try_strategy(const Job& base, const Strategy& strategy, const Forecast& forecast,
                    const Refusals& refusals = {});

// Of one that was to fit by its forecast: with more layers that recompute more where it does not, as far as
// the space has that and as many as should do by what the first of them saves, or some fewer where they are
// not needed.
Leader try_near(const Job& base, const Space& space, const Strategy& strategy, const Forecast& forecast,
                const Refusals& refusals = {});

}  // namespace hyperrun
