// The redistributions of a training step: what moves, from which layout to which, by which collective, how
// much of it and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

// One step of a redistribution. Those of all layers and micro-batches are one where all but their number is
// the same.
struct ListedStep {
  std::string tensor;      // "layers.*.attention.norm.out"
  std::string change;      // "seq:tp -> replicated"
  std::string operation;   // a collective's name, "slice" (which moves nothing), "send" or "recv"
  std::string axes;        // "dp", "tp+cp"
  std::string reason;      // see Node::reason
  std::int64_t bytes = 0;  // that the device moves in one of them, all on one host
  std::int64_t times = 0;  // a step
};

// Of each role the steps of its first device, in the order of the program. Bytes are those that execution
// counts.
std::vector<std::vector<ListedStep>> list_redistributions(const Compiled& compiled, const Job& job);

// A table in which each reason stands above what it is the reason for, with totals by axes.
std::string redistribution_table(const std::vector<ListedStep>& list);

// "layers.*.attention.wq" of "layers.3.attention.wq": all layers lie alike.
std::string without_numbers(const std::string& name);

}  // namespace hyperrun
