// Whether the first plan is still the first on another machine, in words and as JSON.
#pragma once

#include <string>

#include "runtime/plan/robust.h"

namespace hyperrun {

// Empty where fewer than two plans were simulated.
std::string robust_words(const Robustness& robust);

}  // namespace hyperrun
