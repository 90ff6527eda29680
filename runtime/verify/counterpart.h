// What of a sharded graph can be compared with one device, and with which of its tensors.
//
// Both graphs begin with the tensors of the model, in one order. What the sharded one has besides:
//   x@user, x.local, x.step  x in another layout, on its way through redistributions: compared with x
//   x.again                  x, computed again in the backward pass: compared with x
//   x.local of a sum over micro-batches
//                            what one micro-batch adds to it: compared with x in the first micro-batch
//   x.own, x.part, x.step1, grad_norm.squares.of_dp, ...
//                            parts of sums, whose whole one device never has: not compared
// Rows of experts are not compared either; what is collected from them is.
// A tensor of the model that is relative to each device's own part (OperatorRule::local_outputs) has no whole
// where that part is not all. Gradients that are added to one sum (of a tied head and its embedding) are
// added in another order by a pipeline: the first is compared before the others come, the last when all are
// there.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// What a tensor tells about a layout: the rows of a verification's summary.
enum class ValueKind : std::uint8_t { kActivation, kGradient, kWeight, kOptimizer };
inline constexpr std::size_t kValueKinds = 4;
std::string_view name(ValueKind kind);  // "activations"

enum class MicroBatches : std::uint8_t { kAll, kFirst, kLast };

struct Counterpart {
  TensorId tensor;  // of the graph for one device; invalid: there is none
  ValueKind kind = ValueKind::kActivation;
  MicroBatches in = MicroBatches::kAll;  // where they are alike
};

struct Counterparts {
  std::vector<Counterpart> of;  // by tensor of the sharded graph
  int own_parts = 0;            // tensors without one: relative to each device's own part
  int others = 0;               // and what one device does not make, or in another order
};

// `sharded`: with what pipelines add (merged.h). `one_device`: of the same model and training, with nothing
// computed again.
Counterparts counterparts(const Graph& sharded, const Graph& one_device);

}  // namespace hyperrun
