// In which order the devices of a pipeline work on stages and micro-batches.
//
//   gpipe        all forward passes, then all backward passes (Huang et al. 2019)
//   1f1b         a backward pass as soon as there is one; at most V - v micro-batches are under way in stage
//   v
//                of V (Narayanan et al. 2021; with several stages a device the interleaved schedule)
//   zero_bubble  1f1b with the backward pass in two: gradients of activations at once, those of weights
//                when there is nothing else to do (Qi et al. 2024, ZB-H1)
//
// All three are one list scheduler with other priorities, so that uneven stages and any placement of them
// on devices are served as well. The latter two can do a backward pass beside the forward pass of a later
// micro-batch: stages then need twice as many under way to keep each other busy, as both of a pair end when
// the pair does (DeepSeek-V3, 2024, section 3.2.1, of its chunks).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

enum class SlotKind : std::uint8_t {
  kForward,
  kBackward,        // all of it
  kInputGradient,   // or in two parts: what flows on,
  kWeightGradient,  // and what stays
};

// What a device does without changing over: one stage's pass of one micro-batch.
struct Slot {
  SlotKind kind = SlotKind::kForward;
  int stage = 0, micro_batch = 0;
  bool beside = false;  // the slot before it, with which it is a pair
  bool operator==(const Slot&) const = default;
};

// When a slot runs if a layer's forward pass takes 1, each half of its backward pass 1, and messages nothing.
struct TimedSlot {
  Slot slot;
  std::int64_t begin = 0, end = 0;
};

enum class Turns : std::uint8_t {
  kSingle,
  kPaired,  // a forward pass, and a backward pass beside it, wherever there are both
};

// The slots of each of `devices`, in order. A job without a pipeline has one stage on one device.
// `spec` has at least one stage on every device. Every slot is there once, none before what it needs.
std::vector<std::vector<TimedSlot>> pipeline_schedule(const PipelineSpec& spec, int devices,
                                                      int micro_batches, Turns turns = Turns::kSingle);

}  // namespace hyperrun
