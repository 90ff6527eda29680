// How far a simulated step can be trusted, in words.
#pragma once

#include <string>

#include "runtime/ir/step_range.h"

namespace hyperrun {

// How the machine's figures are known, the step's range, and the guesses it hangs on most. Nothing of a
// machine without a profile.
std::string range_words(const StepRange& range);
// The same in two parts, of which the first is told once of what is simulated on one machine: how its figures
// are known; the range of `what` ("the step") and what it hangs on.
std::string evidence_words(const StepRange& range);
std::string spread_words(const StepRange& range, const std::string& what);

}  // namespace hyperrun
