// Lowers a sharded Graph to the instructions of one device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/compile/lowered.h"
#include "runtime/compile/pipeline_schedule.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// A tensor of one micro-batch that is sent to another device; -1: a tensor of the update.
struct Message {
  TensorId tensor;
  int micro_batch = -1;
  bool operator==(const Message&) const = default;
};

// The storage of a Program's sums over micro-batches.
enum class Sums : std::uint8_t {
  kOfTheStep,  // buffers of the Program, which does a whole step
  kKept,       // state, to which each invocation adds
  kCleared     // state as well; zero when the Program has ended
};

struct LowerOptions {
  std::string name;         // the Program's name
  std::vector<Slot> slots;  // forward and backward passes in the order of issue; the update follows them
  std::function<bool(const Node&)> wants;        // true for nodes that belong to the Program
  std::map<int, std::vector<Message>> arrivals;  // messages from each peer on the pipeline's axis, in order
  Sums sums = Sums::kOfTheStep;
  // True for tensors that one Program of the graph leaves to another one, which must be lowered with the same
  // predicate. They are state. A tensor that is made in place of a kept sum, as by an all-reduce, has the
  // sum's buffer. Empty: no tensor crosses.
  std::function<bool(TensorId)> crosses;
  bool names = true;  // keep the names of instructions (Program::origins), and of buffers other than state
};

// The messages that a device sends to each peer, in order.
std::map<int, std::vector<Message>> messages(const Graph& graph, const LowerOptions& options);

// Lowers the wanted nodes. Buffers have sizes but no offsets yet (place.h), instructions no events
// (events.h). An output takes the buffer of an input that is dead afterwards, if the operator allows it
// (in_place()). A Recv is issued one slot, or pair, before the one that uses it. State buffers have their
// tensor's name.
Lowered lower(const Graph& graph, const Mesh& mesh, const LowerOptions& options);

}  // namespace hyperrun
