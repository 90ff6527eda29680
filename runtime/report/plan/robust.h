// Text on robustness: is the first plan still first on another machine?
#pragma once

#include <string>

#include "runtime/plan/robust.h"

namespace hyperrun {

// Empty if fewer than two plans were simulated.
std::string robust_text(const Robustness& robust);

}  // namespace hyperrun
