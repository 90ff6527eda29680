// The range of what `hyperrun sim` has simulated, and what it hangs on.
#pragma once

#include <optional>
#include <string>

#include "runtime/forecast/sim.h"
#include "runtime/ir/job.h"
#include "runtime/ir/step_range.h"
#include "runtime/sim/guess_effects.h"

namespace hyperrun {

// Standard error says how far it is. A machine made of the job's own rates has no guesses, and no range; nor
// is there one where --no-range asks for none.
std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec,
                                  const TimeOn& time);
// The range of a Program of the plan.
std::optional<StepRange> range_of(const SimArguments& arguments, const SupernodeSpec& spec, const Plan& plan,
                                  const std::string& program, const SimOptions& sim = {});

}  // namespace hyperrun
