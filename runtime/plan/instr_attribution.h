// Attribution of a step of few layers: to which layer, micro-batch and phase each instruction belongs, and
// how long each buffer lives.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/plan/parametric_step.h"

namespace hyperrun {

// Place of an instruction in the step.
struct InstrSite {
  Phase phase = Phase::kForward;
  int layer = -1, micro_batch = -1;
  bool for_weights = false;  // it makes weight gradients, for which no other stage waits
};

// The micro-batch of a probe step (layer_profile.h) that has a neighbour on either side.
inline constexpr int kMiddleMicroBatch = 1;

bool is_split_over_experts(const ParametricStep& step, TensorId t);  // false for an invalid tensor
bool has_model_width(const ParametricStep& step, TensorId t);        // false for an invalid tensor
// The model's width and that of a feed-forward part.
bool has_both_widths(const ParametricStep& step, TensorId t);

// Tensor axes over which a gradient that is partial or repeated is shared out while it is reduced along the
// data axes. Devices that hold equal copies along an axis can each reduce a part and exchange the parts
// afterwards. Axes along which the gradient is a partial sum count as well, as this moves no more bytes.
// Empty if no axis repeats the gradient.
AxisList shared_tensor_axes(const ParametricStep& step, TensorId gradient);

// One site for each instruction of a step that is not frozen yet.
std::vector<InstrSite> attribute_instrs(const ParametricStep& step, int layers);

// Lifetime of a buffer.
struct BufferLifetime {
  int layer = -1;           // -1: embedding; number of layers or more: head
  bool whole_step = false;  // lives for the whole step
  bool kept = false;        // lives from a forward to a backward pass
  // True if a forward or backward pass uses it before the first layer, or behind the last.
  bool used_before = false, used_behind = false;
};

// One lifetime for each buffer.
std::vector<BufferLifetime> lifetimes_of(const Program& program, const std::vector<InstrSite>& sites,
                                         int layers);

}  // namespace hyperrun
