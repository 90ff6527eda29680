// The stretches of a Program within which instructions may change places so that exchanges of tiles hide:
// from one pair of exchanges, to the experts and back, up to the next.
//
//   forward    ... dispatch tiles, experts, combine tiles, | sum of the tokens, attention ...
//              and what follows but does not need the result: a shared expert comes into the window, as
//              there is something to compute while the first tile is sent and while the last one comes back
//   backward   ... what the layer above has left to do (gradients of weights), dispatch tiles, ...
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

// Of each instruction those earlier ones that end before it begins, whatever place its buffers get: who made
// what it reads, and who uses what it writes over. Messages keep their order.
std::vector<std::vector<std::int32_t>> dependencies(const Program& program);

// One for each pair of exchanges that is cut into tiles. `after`: dependencies(program). Nothing goes past a
// message to another stage, or past the begin of a micro-batch.
std::vector<Window> windows(const Program& program, std::span<const std::vector<std::int32_t>> after);

}  // namespace hyperrun
