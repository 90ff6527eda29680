// Parts of one model as plans of their own, for models of several parts: encoders, and the stages of the text
// model that reads what they give. Each part (a sub-model) has a mesh, layouts and devices of its own. Its
// Programs take one micro-batch (an encoder: one pass over its items) each:
//
//   init      sets all state; sums of gradients begin at zero
//   forward   (not of a text model's last part) takes port.in, tokens and features, or input vectors; leaves
//             port.out
//   backward  the same again, then takes port.out.grad (the last part: the loss) back: adds to the sums of
//             gradients, leaves port.in.grad and those of the features. Output of the last part: "loss", the
//             sum of -weight * logp of this micro-batch alone
//   score     (a text model's last part) "logp" f32[batch, sequence] of each target, as Purpose::kScore has
//             it; parts before it do "forward" for this
//   norm      (where training.clip_norm > 0) exchanges what gradients are partial over and leaves them to
//             "update". Output: "grad_squares", the sum of their squares, of all devices together
//   update    clips, then AdamW; the sums are zero again. Output: "grad_norm"
//
// Clipping is by the norm of the whole model: "update" comes behind "norm" of all parts and is told the
// squares of the others (Scalars::other_squares), so that "grad_norm" is that of all. Without clipping
// "update" waits for nobody: it exchanges gradients itself, and "grad_norm" is of this part alone, if
// Scalars::other_squares is 0.
//
// What goes from part to part lies in ports (TensorClass::kPort): state that no checkpoint has, listed in
// Role::state, whose first dimension is the slot that an invocation names (Scalars::slot).
//
//   port.in, port.in.grad      [slots, batch, seq, hidden], of parts that do not begin a text model
//   port.out, port.out.grad    the same, of parts that do not end it;
//                              of an encoder [slots, items, tokens, features], split along items alone
//   port.NAME, port.NAME.grad  [slots, items, tokens, hidden] for each of the features, whole on all devices
//
// Their data type is that of activations: bfloat16 under that precision, else float32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

// What a sub-model has of its model, and how much of it is under way.
struct SubmodelSpec {
  // As it would be alone. A micro-batch is training.batch / training.micro_batches sequences, or items of an
  // encoder (model "encoder"), whose micro_batches are 1.
  Job job;
  std::int32_t first_layer = 0, end_layer = -1;  // its layers; -1: to the model's last
  std::int64_t slots = 1;                        // micro-batches whose ports have room at once
  // Of a text model's first part: what it takes features of. Rows are the items x tokens of a micro-batch.
  struct Features {
    std::string name;
    std::int64_t items = 0, tokens = 0;
  };
  std::vector<Features> features;
};

// Throws kBadLayout, kBadValue or kDoesNotFit. `like`: as of compile().
Compiled compile_submodel(const SubmodelSpec& spec, const Moves* like = nullptr);

// The axes of the plan's mesh along which no Program of these names communicates: what lies along them are
// replicas, each of which may be sent these Programs alone.
AxisList axes_of_replicas(const Plan& plan, const std::vector<std::string_view>& programs);

// How many replicas there are along these axes.
std::int64_t replicas(const Plan& plan, const std::vector<std::string_view>& programs);

}  // namespace hyperrun
