// From a sharded Graph to the instructions of one device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/compile/lowered.h"
#include "runtime/compile/pipeline_schedule.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A tensor of a micro-batch (-1: of the update) that is on its way to another device.
struct Message {
  TensorId tensor;
  int micro_batch = -1;
  bool operator==(const Message&) const = default;
};

// Where a Program's sums over micro-batches are.
enum class Sums : std::uint8_t {
  kOfTheStep,  // in the Program, which takes all of a step
  kKept,       // state, to which each invocation adds
  kCleared     // the same, and zero when the Program has ended
};

struct LowerOptions {
  std::string name;  // of the Program
  std::vector<Slot>
      slots;  // forward and backward passes in the order in which they are issued, then the update
  std::function<bool(const Node&)> wants;        // nodes that belong to the Program
  std::map<int, std::vector<Message>> arrivals;  // from each peer on the pipeline's axis, in order
  Sums sums = Sums::kOfTheStep;
  // Tensors that one Program of the graph leaves to another, which is lowered with the same predicate: state.
  // What a kept sum becomes in place, as by an all-reduce, lies in its buffer. Empty: none.
  std::function<bool(TensorId)> crosses;
  bool names = true;  // of instructions, as origins, and of buffers that are no state
};

// What a device sends to each peer, in order.
std::map<int, std::vector<Message>> messages(const Graph& graph, const LowerOptions& options);

// A Recv is issued while the slot, or the pair, before the one that uses it is still to run.
// Buffers have sizes but no places yet (see place.h), instructions no events (events.h). In-place where
// the operator allows it and the input is dead afterwards. State buffers carry their tensor's name.
Lowered lower(const Graph& graph, const Mesh& mesh, const LowerOptions& options);

}  // namespace hyperrun
