// Lower bounds for layers of which any number may recompute more. The elementwise minimum of both profiles
// bounds each layer; corrections cover the places where passes meet.
#pragma once

#include <cstdint>

#include "runtime/plan/closed_form.h"
#include "runtime/plan/layer_profile.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// The time that a pass saves if it is the last of a stage, ns; 0 or less.
double end_saving(const PassProfile& pass);
double end_saving(const PassProfile& one, const PassProfile& other);  // the larger saving of the two
// The time from the end of the pass back to the result that the previous stage waits for, ns; 0 or less.
double handoff_saving(const PassProfile& pass);
double end_saving(const SplitPass& pass);
double end_saving(const SplitPass& one, const SplitPass& other);

// Profile of a layer that recomputes like either one: the times and lower bounds of its passes are the
// minimum of both, those at an end of a stage are `one`'s. The prologue is chosen so that the rest of the
// pass is no longer than either.
LayerProfile elementwise_min(const LayerProfile& one, const LayerProfile& other);

// Savings in ns; 0 or less.
struct EndSavings {
  double forward = 0, backward = 0, split = 0;
};
// Savings where layers that recompute more meet the others. The pass before may be as short as at an end of
// the stage, because rematerialisation need not wait for it. Forward passes save nothing if both profiles
// have equal ones.
EndSavings boundary_savings(const StepProfiles& layers);

// The least ratio of a strategy's bound with any number of extra recomputing layers to its bound without
// them; 1 if `profiles.extra` is null. It holds for bounds without axis placement. `layers`: of the model.
double extra_recompute_share(const StepProfiles& profiles, const Strategy& strategy, std::int32_t layers);

}  // namespace hyperrun
