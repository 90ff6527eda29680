// Finds, for each tensor of a sharded graph, the tensor of one device that it can be compared with.
//
// Both graphs begin with the tensors of the model, in the same order. The sharded graph has these besides:
//   x@user, x.local, x.step  x in another layout, on its way through redistributions: compared with x
//   x.again                  x, computed again in the backward pass: compared with x
//   x.local of a sum over micro-batches
//                            what one micro-batch adds to it: compared with x in the first micro-batch
//   x.own, x.part, x.step1, grad_norm.squares.of_dp, ...
//                            parts of sums, whose whole one device never has: not compared
// Rows of experts are not compared either; tensors collected from them are.
// A tensor that is relative to each device's own part (OperatorRule::local_outputs) has no whole value if the
// axes split that part. A pipeline adds gradients to one sum (of a tied head and its embedding) in another
// order: the first one is compared before the others are added, the last when all are there.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/ir/graph.h"

namespace hyperrun {

// The kind of a compared value; a verification's summary has a row for each.
enum class ValueKind : std::uint8_t { kActivation, kGradient, kWeight, kOptimizer };
inline constexpr std::size_t kValueKinds = 4;
std::string_view name(ValueKind kind);  // "activations"

enum class MicroBatches : std::uint8_t { kAll, kFirst, kLast };

struct Counterpart {
  TensorId tensor;  // in the graph for one device; invalid: none
  ValueKind kind = ValueKind::kActivation;
  MicroBatches in = MicroBatches::kAll;  // micro-batches in which both are equal
};

struct Counterparts {
  std::vector<Counterpart> of;  // by tensor of the sharded graph
  int own_parts = 0;            // tensors without a counterpart, because they are relative to a device's part
  int others = 0;               // other tensors without a counterpart
};

// `sharded` includes the nodes that pipelines add (merged.h). `one_device` is the graph of the same model and
// training, without recomputation.
Counterparts counterparts(const Graph& sharded, const Graph& one_device);

}  // namespace hyperrun
