#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// In which communication was under way, and neither cube nor vector computed: by when each instruction ran
// (`spans`) and the instructions of each stream in the order in which they began.
Nanos exposed_communication(std::span<const Span> spans,
                            const std::array<std::vector<std::size_t>, kStreams>& streams);

}  // namespace hyperrun
