// Converts a pass's requests to the bytes that an invocation carries, and back.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/requests.h"

namespace hyperrun {

std::string to_bytes(const Requests& requests);

// Throws kControl when the bytes are no requests.
Requests requests_from_bytes(std::string_view bytes);

}  // namespace hyperrun
