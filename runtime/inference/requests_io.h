// A pass' requests, as an invocation carries them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/requests.h"

namespace hyperrun {

std::string to_bytes(const Requests& requests);

// Throws kControl when the bytes are none.
Requests requests_from_bytes(std::string_view bytes);

}  // namespace hyperrun
