// Converts a pass's input vectors to the bytes that an invocation carries, and back.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/input_vectors.h"

namespace hyperrun {

std::string to_bytes(const InputVectors& vectors);

// True if these bytes are input vectors, and neither requests (requests_io.h) nor samples (samples_io.h).
bool are_vectors(std::string_view bytes);

// Throws kControl when the bytes are no input vectors.
InputVectors vectors_from_bytes(std::string_view bytes);

}  // namespace hyperrun
