// Converts the statistics of an invocation to bytes and back.
#pragma once

#include <string>
#include <string_view>

#include "runtime/ir/stats.h"

namespace hyperrun {

// `shift` is added to all times; it converts this host's steady clock to Unix time. Spans and the HBM curve
// are only included when `traced`.
std::string to_bytes(const InvocationStats& stats, std::int64_t shift, bool traced);

// Throws kControl with `place` when the bytes are no statistics of this version.
InvocationStats stats_from_bytes(std::string_view bytes, const std::string& place);

}  // namespace hyperrun
