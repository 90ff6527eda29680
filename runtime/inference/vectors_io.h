// A pass' input vectors, as an invocation carries them.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/input_vectors.h"

namespace hyperrun {

std::string to_bytes(const InputVectors& vectors);

// Whether these bytes are input vectors, and neither requests (requests_io.h) nor samples (samples_io.h).
bool are_vectors(std::string_view bytes);

// Throws kControl when the bytes are none.
InputVectors vectors_from_bytes(std::string_view bytes);

}  // namespace hyperrun
