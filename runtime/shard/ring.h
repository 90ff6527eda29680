// Ring attention (Liu et al. 2023): the sequence stays split, and keys and values pass round a ring of
// devices.
#pragma once

#include "runtime/ir/graph.h"
#include "runtime/shard/rules.h"

namespace hyperrun {

// The axes of the ring of an Attention or its gradient: those that split the sequence in the result's
// declared layout. Empty for other nodes.
AxisList ring_of(const Node& node, const std::vector<Declaration>& declared);

// Sets Dim::ring of each sequence, which defines the order of its positions (runtime/ir/zigzag.h). All
// tensors with the sequence and all causal attentions over it share the order; attention without a mask
// accepts any. Throws kBadLayout if rings over one sequence have different sizes.
void order_sequence(Graph& graph, const std::vector<Node>& nodes, const Mesh& mesh,
                    const std::vector<Declaration>& declared);

// Appends the steps that replace an Attention or AttentionGrad. The layouts of its operands split the
// sequence over `axes`. `devices`: 2 or more along the axes.
//
//   forward   In step i a device's queries meet the keys and values of the i-th device before it. Meanwhile
//             keys and values are passed on: devices - 1 shifts of each.
//   backward  Keys and values pass round again. Their gradients travel too, beginning with the neighbour's,
//             and each device adds its part. After devices - 1 shifts they are back on their own devices,
//             where the part of step 0 is added.
void append_ring(Graph& graph, const Node& attention, const AxisList& axes, std::int64_t devices);

}  // namespace hyperrun
