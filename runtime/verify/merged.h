// The graphs of all roles of a plan as one, and the way from an instruction back to its node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

struct Merged {
  Graph graph;               // what several roles do alike is one node; in the order of the computation
  std::vector<int> devices;  // that run each node
  std::vector<std::map<std::string, int, std::less<>>> at;  // by role: where its nodes are, by name
};

Merged merge(const Compiled& compiled, const PipelineSpec& pipeline);

// An instruction's outputs are those of the node, in their order.
struct Write {
  int node = -1;  // index into Merged::graph.nodes; -1: the instruction only prepares another of its node
  int micro_batch = 0;  // of nodes of the update the last one
};

// One an instruction of `program`, which is one of the role's, lowered for so many micro-batches.
std::vector<Write> writes(const Program& program, const Merged& merged, std::size_t role, int micro_batches);

}  // namespace hyperrun
