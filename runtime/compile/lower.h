// From a sharded Graph to the instructions of one device.
#pragma once

#include <functional>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

struct LowerOptions {
  std::string name;                        // of the Program
  int micro_batches = 1;                   // forward and backward are issued this often, then the update once
  std::function<bool(const Node&)> wants;  // nodes that belong to the Program
};

// Buffers have sizes but no places yet (see place.h), instructions no events (events.h). In-place where
// the operator allows it and the input is dead afterwards. State buffers carry their tensor's name.
struct Lowered {
  Program program;
  std::size_t update = 0;  // the first instruction of the update
};

Lowered lower(const Graph& graph, const Mesh& mesh, const LowerOptions& options);

}  // namespace hyperrun
