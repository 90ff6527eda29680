// Sub-models: parts of one model as separate plans. A sub-model is an encoder, or a stage of the text model
// that reads the encoders' features. Each has a mesh, layouts and devices of its own. An invocation of its
// Programs takes one micro-batch, or one pass of an encoder over its items:
//
//   init      sets all state; sums of gradients begin at zero
//   forward   reads port.in, tokens and features, or input vectors; writes port.out. The last stage has none
//   backward  repeats the forward pass, then propagates port.out.grad (in the last stage the loss) back. It
//             adds to the sums of gradients, and writes port.in.grad and the gradients of features. The last
//             stage outputs "loss", the sum of -weight * logp of this micro-batch alone
//   score     is of the last stage: outputs "logp" f32[batch, sequence] of each target, as Purpose::kScore
//             does. The stages before it run "forward" for this
//   norm      (if training.clip_norm > 0) reduces gradients that are partial sums, and leaves them for the
//             update. It outputs "grad_squares", the sum of their squares over all devices
//   update    clips, applies AdamW, and sets the sums to zero. It outputs "grad_norm"
//
// Clipping uses the norm of the whole model. So "update" runs after "norm" of all sub-models, and is given
// the squares of the others (Scalars::other_squares); "grad_norm" is that of the whole model. Without
// clipping "update" depends on no other sub-model: it reduces gradients itself, and "grad_norm" is of this
// sub-model alone, if Scalars::other_squares is 0.
//
// Sub-models exchange tensors through ports (TensorClass::kPort). A port is state that is in Role::state but
// in no checkpoint. Its first dimension is the slot that an invocation names (Scalars::slot).
//
//   port.in, port.in.grad      [slots, batch, seq, hidden], of all stages but the first
//   port.out, port.out.grad    the same, of all stages but the last;
//                              of an encoder [slots, items, tokens, features], split along items alone
//   port.NAME, port.NAME.grad  [slots, items, tokens, hidden], of the first stage, one for each of its
//                              features; every device has the whole port
//
// The data type of ports is that of activations: bfloat16 in that precision, else float32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/compile.h"

namespace hyperrun {

// A sub-model: its part of the model, and the size of its ports.
struct SubmodelSpec {
  // The job of the sub-model alone. A micro-batch has training.batch / training.micro_batches sequences. For
  // an encoder (model "encoder") the batch counts items, and micro_batches is 1.
  Job job;
  std::int32_t first_layer = 0, end_layer = -1;  // layers [first_layer, end_layer); -1: to the model's last
  std::int64_t slots = 1;                        // number of micro-batches that fit into the ports at once
  // Features that a text model's first stage reads, with the items x tokens of a micro-batch.
  struct Features {
    std::string name;
    std::int64_t items = 0, tokens = 0;
  };
  std::vector<Features> features;
};

// `like` is that of compile(). Throws kBadLayout, kBadValue or kDoesNotFit.
Compiled compile_submodel(const SubmodelSpec& spec, const Moves* like = nullptr);

// The axes of the plan's mesh along which none of these Programs communicates, and which split the items of
// all ports. Devices that differ along them are replicas: each may run these Programs without the others.
AxisList axes_of_replicas(const Plan& plan, const std::vector<std::string_view>& programs);

// The number of replicas along these axes.
std::int64_t replicas(const Plan& plan, const std::vector<std::string_view>& programs);

}  // namespace hyperrun
