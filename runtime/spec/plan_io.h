// Converts a Plan to bytes and back. Reading checks everything that the executor relies on: indices, enums,
// sizes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/program.h"

namespace hyperrun {

std::string to_bytes(const Plan& plan);

// Throws kControl with `place` when the bytes are no Plan of this version.
Plan plan_from_bytes(std::string_view bytes, const std::string& place);

}  // namespace hyperrun
