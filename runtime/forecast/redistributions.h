// The redistributions of a training step: each with its tensor, layouts, collective, bytes and reason. For
// example:
//
//   layers.*.ffn.down.out   partial:tp -> whole   all-reduce tp
//     partial sums over tp are completed for layers.*.ffn.add
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

// One operation of a redistribution. Equal operations of different layers and micro-batches are one entry.
struct ListedStep {
  std::string tensor;      // "layers.*.attention.norm.out"
  std::string change;      // "seq:tp -> replicated"
  std::string operation;   // a collective's name, "slice" (which moves nothing), "send" or "recv"
  std::string axes;        // "dp", "tp+cp"
  std::string reason;      // the reason as in Node::reason
  std::int64_t bytes = 0;  // bytes that the device moves each time, if all devices are on one host
  std::int64_t times = 0;  // number of times in a training step
};

// The operations of the first device of each role, in the order of the Program. Bytes equal those that
// execution counts.
std::vector<std::vector<ListedStep>> list_redistributions(const Compiled& compiled, const Job& job);

// A table in which each reason stands above its operations, with totals by axes at the end.
std::string redistribution_table(const std::vector<ListedStep>& list);

// Replaces layer numbers by "*": "layers.3.attention.wq" becomes "layers.*.attention.wq".
std::string without_numbers(const std::string& name);

}  // namespace hyperrun
