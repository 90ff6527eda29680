// Windows of a Program in which instructions may be reordered to hide exchanges of tiles. A window reaches
// from one pair of exchanges (to the experts and back) to the next.
//
//   forward    ... dispatch tiles, experts, combine tiles, | sum of the tokens, attention ...
//              A shared expert follows but does not need the result, so it is in the window too. It is
//              computed while the first tile is sent and while the last one returns.
//   backward   ... gradients of weights that the layer above has left, dispatch tiles, ...
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// [begin, end) of instructions.
struct Window {
  std::int32_t begin = 0, end = 0;
  bool operator==(const Window&) const = default;
};

// The earlier instructions that must end before it begins, wherever its buffers are placed, by instruction.
// They write what it reads or use what it overwrites. Messages keep their order.
std::vector<std::vector<std::int32_t>> dependencies(const Program& program);

// One window for each pair of exchanges in tiles. `after`: dependencies(program). Nothing may move past a
// message to another stage or past the begin of a micro-batch.
std::vector<Window> windows(const Program& program, std::span<const std::vector<std::int32_t>> after);

}  // namespace hyperrun
