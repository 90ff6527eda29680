// The range of a simulated time: how much it changes if the guesses in the machine's profile are wrong.
#pragma once

#include <optional>
#include <string>

#include "runtime/forecast/sim.h"
#include "runtime/ir/job.h"
#include "runtime/ir/step_range.h"
#include "runtime/sim/guess_effects.h"

namespace hyperrun {

// Shows progress on standard error. nullopt if --no-range is given, or if the machine has no guesses because
// the job gives all rates itself.
std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec,
                                  const TimeOn& time);
// The range of one Program of the plan.
std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec, const Plan& plan,
                                  const std::string& program, const SimOptions& sim = {});

}  // namespace hyperrun
