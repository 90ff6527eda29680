// Attention whose sequence stays split, as the steps that go round a ring (Liu et al. 2023).
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

// The axes along which an Attention or its gradient goes round: those that its result is declared to have on
// the sequence. Of other nodes, none.
AxisList ring_of(const Node& node, const std::vector<Declaration>& declared);

// Sets Dim::ring of each sequence: one order serves all tensors that have it, and every causal attention over
// it; one without a mask takes any order, and asks for none. Throws kBadLayout when rings over one sequence
// differ in size.
void order_sequence(Graph& graph, const std::vector<Node>& nodes, const Mesh& mesh,
                    const std::vector<Declaration>& declared);

// Appends to `graph`, in place of an Attention or AttentionGrad whose operands have `axes` on the sequence
// and their layouts in graph.layouts, the steps that compute its outputs. `devices`: along the axes, 2 or
// more.
//
//   forward   in step i a device's queries meet the keys and values of the device i before it, which are
//   passed
//             on while they meet: devices - 1 shifts of k and of v
//   backward  k and v go round again. A device adds its part to gradients of keys and values that are under
//   way,
//             beginning with those of its neighbour, so that they are home after devices - 1 shifts as well;
//             there the part of step 0 is added.
void append_ring(Graph& graph, const Node& attention, const AxisList& axes, std::int64_t devices);

}  // namespace hyperrun
