// Describes what fills a memory tier, for refusals (check_fits() in compile.h).
#pragma once

#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// Lines of text: the Program that needs most of the tier, the instruction at its peak, and the largest
// tensors that are live there.
std::string what_fills(const Plan& plan, Tier tier);

}  // namespace hyperrun
