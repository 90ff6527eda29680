// Conditions of a script: [ ... ], test and [[ ... ]].
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/frameworks/shell/sources.h"

namespace hyperrun::shell {

// Whether the condition holds; nullopt if only a run would know. An unset variable counts as empty; no file
// is there.
std::optional<bool> holds(const std::vector<Text>& words);

}  // namespace hyperrun::shell
