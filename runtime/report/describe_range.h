// Text for people on the range of a simulated step: how far it can be trusted.
#pragma once

#include <string>

#include "runtime/ir/step_range.h"

namespace hyperrun {

// Describes the evidence for the machine's figures, the step's range, and the guesses that matter most. Empty
// for a machine without a profile.
std::string describe_range(const StepRange& range);
// The two parts of it. describe_evidence() is printed once for all simulations on a machine.
// describe_spread() has the range of `what` ("the step") and its guesses.
std::string describe_evidence(const StepRange& range);
std::string describe_spread(const StepRange& range, const std::string& what);

}  // namespace hyperrun
