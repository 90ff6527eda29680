// Lowers one operator of the graph to one instruction with the sizes of one device.
#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

struct LowerContext {
  const Graph& graph;
  const Mesh& mesh;
  bool accumulate = false;  // the output already holds a part of the sum
};

// The instruction of the first micro-batch. Other micro-batches differ in the samples that they load.
InstrOp lower_operator(const LowerContext& context, const Node& node);

// Pairs (output, input) that may share a buffer when the input is dead afterwards.
std::vector<std::pair<std::size_t, std::size_t>> in_place(const GraphOp& op);

StreamKind stream_of(const InstrOp& op);

}  // namespace hyperrun
