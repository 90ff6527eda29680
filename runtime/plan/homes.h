// Where in a step of few layers its instructions belong, and how long its buffers live.
#pragma once

#include <vector>

#include "runtime/ir/graph.h"
#include "runtime/plan/sized_step.h"

namespace hyperrun {

// Where an instruction belongs.
struct Home {
  Phase phase = Phase::kForward;
  int layer = -1, micro_batch = -1;
  bool for_weights = false;  // it makes gradients of weights, for which no other stage waits
};

// Of the micro-batches of a probe (pieces.h) the one that is among its like.
inline constexpr int kMiddle = 1;

bool lies_over_experts(const SizedStep& step, TensorId t);  // none does not
bool has_width(const SizedStep& step, TensorId t);          // the model's; none has not
bool has_two_widths(const SizedStep& step, TensorId t);     // and that of its feed-forward parts

// Tensor axes along which a device has a part of a gradient for its own while it is exchanged along axes that
// split tokens: where devices along one of them have all of it in common, each may exchange a part and get
// the others' then. The part is cut by the axes along which it is partial as well, as that moves no more
// bytes then.
AxisList cut_by(const SizedStep& step, TensorId gradient);

// Of a step that is not settled, by instruction.
std::vector<Home> homes_of(const SizedStep& step, int layers);

// How long a buffer lives.
struct Stay {
  int layer = -1;      // -1: before the layers; as many as there are: behind them
  bool lasts = false;  // as long as the step
  bool kept = false;   // from a forward to a backward pass
  // A forward or backward pass reads or writes it before the layers, behind them.
  bool before = false, behind = false;
};

// By buffer.
std::vector<Stay> stays_of(const Program& program, const std::vector<Home>& homes, int layers);

}  // namespace hyperrun
