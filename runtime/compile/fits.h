// What a plan's tiers are filled with, in words: for refusals (compile.h, check_fits).
#pragma once

#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

// Of the tier, lines of it: the Program that needs most, where it does, and the largest tensors live there.
std::string what_fills(const Plan& plan, Tier tier);

}  // namespace hyperrun
