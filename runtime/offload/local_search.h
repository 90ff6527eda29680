// Local search: improves an offload plan by changing the evictions of one or two gaps.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/offload/offload_plan.h"
#include "runtime/offload/plan_evaluator.h"

namespace hyperrun {

// Tries other choices for one gap, then for two at once, while the step becomes shorter or the excess over
// the budget smaller. Offloaded state stays as it is. `state` and `budget`: see PlanEvaluator::evaluate().
//
// `most` limits the work, in instructions evaluated. The plan is returned unchanged if trying each gap once
// would exceed it.
OffloadPlan improved(const PlanEvaluator& evaluator, OffloadPlan plan, Bytes state, Bytes budget,
                     std::int64_t most);

// Likewise, but for few gaps it also starts from every combination of extreme choices: resident, absent as
// long as possible, or rematerialized right before the use. Returns the best plan found.
OffloadPlan improved_from_extremes(const PlanEvaluator& evaluator, OffloadPlan plan, Bytes state,
                                   Bytes budget, std::int64_t most);

}  // namespace hyperrun
