// Merges the graphs of all roles of a plan into one, and finds the node of each instruction.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

struct Merged {
  Graph graph;               // in the order of computation; equal nodes of several roles are one node
  std::vector<int> devices;  // number of devices that run each node
  std::vector<std::map<std::string, int, std::less<>>> at;  // by role and name: index of the node
};

Merged merge(const Compiled& compiled, const PipelineSpec& pipeline);

// The node whose outputs an instruction writes, in their order.
struct Write {
  int node = -1;  // index into Merged::graph.nodes; -1: the instruction only prepares another one of its node
  int micro_batch = 0;  // for nodes of the update the last one
};

// One entry for each instruction of `program`, a program of the role lowered for `micro_batches`.
std::vector<Write> writes(const Program& program, const Merged& merged, std::size_t role, int micro_batches);

}  // namespace hyperrun
