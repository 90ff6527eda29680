#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// Time in which communication was under way and neither cube nor vector computed. `spans` are the times of
// the instructions; `streams` lists each stream's instructions in the order of their beginnings.
Nanos exposed_communication(std::span<const Span> spans,
                            const std::array<std::vector<std::size_t>, kStreams>& streams);

}  // namespace hyperrun
