// How far a simulated step can be trusted, in words.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/ir/step_range.h"

namespace hyperrun {

// How the machine's figures are known, the step's range, and the guesses it hangs on most, `most` of them at
// most. Nothing of a machine without a profile.
std::string range_words(const StepRange& range, std::size_t most = 3);

}  // namespace hyperrun
