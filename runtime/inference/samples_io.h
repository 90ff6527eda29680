// Converts a pass's samples to the bytes that an invocation carries, and back.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/samples.h"

namespace hyperrun {

std::string to_bytes(const Samples& samples);

// True if these bytes are samples, and not requests (requests_io.h) or input vectors (vectors_io.h).
bool are_samples(std::string_view bytes);

// Throws kControl when the bytes are no samples.
Samples samples_from_bytes(std::string_view bytes);

}  // namespace hyperrun
