// A Program as it is lowered, before it has places and events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// What an instruction is made of.
struct Origin {
  std::int32_t node = -1;         // of the Graph; -1: of none, as it clears a sum
  std::int32_t micro_batch = -1;  // -1: of none
};

struct Lowered {
  Program program;
  std::size_t update = 0;            // the first instruction of the update
  std::vector<Origin> origins = {};  // by Instr::origin
};

}  // namespace hyperrun
