// The result of lowering: a Program whose buffers have no offsets yet and whose instructions have no events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// The source of an instruction.
struct Origin {
  std::int32_t node = -1;         // node of the Graph; -1: none, the instruction clears a sum
  std::int32_t micro_batch = -1;  // -1: belongs to no micro-batch
};

struct Lowered {
  Program program;
  std::size_t update = 0;            // the first instruction of the update
  std::vector<Origin> origins = {};  // by Instr::origin
};

}  // namespace hyperrun
