// The order in which the devices of a pipeline run the passes of their stages and micro-batches.
//
//   gpipe        all forward passes, then all backward passes (Huang et al. 2019)
//   1f1b         a backward pass as soon as there is one; stage v of V has at most V - v micro-batches under
//                way (Narayanan et al. 2021; with several stages on a device: their interleaved schedule)
//   zero_bubble  1f1b with the backward pass in two parts: gradients of activations at once, those of weights
//                when there is nothing else to do (Qi et al. 2024, ZB-H1)
//
//   1f1b, 2 stages, 3 micro-batches     stage 0   F0 F1 -- B0 F2 B1 -- B2
//                                       stage 1   -- F0 B0 F1 B1 F2 B2 --
//
// One list scheduler makes all three, with different priorities; it takes uneven stages and any placement of
// stages on devices. The latter two can pair a backward pass with the forward pass of a later micro-batch.
// Then stages need twice as many micro-batches under way to keep each other busy, because both passes of a
// pair end when the pair does (DeepSeek-V3, 2024, section 3.2.1, about its chunks).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

enum class SlotKind : std::uint8_t {
  kForward,
  kBackward,        // a whole backward pass
  kInputGradient,   // zero bubble: the part that another stage waits for
  kWeightGradient,  // zero bubble: the gradients of weights
};

// One pass of one micro-batch through one stage; a device runs it without interruption.
struct Slot {
  SlotKind kind = SlotKind::kForward;
  int stage = 0, micro_batch = 0;
  bool beside = false;  // runs beside the slot before it; the two are a pair
  bool operator==(const Slot&) const = default;
};

// The time of a slot. A layer's forward pass takes 1, each half of its backward pass 1, messages nothing.
struct TimedSlot {
  Slot slot;
  std::int64_t begin = 0, end = 0;
};

enum class Turns : std::uint8_t {
  kSingle,
  kPaired,  // a forward and a backward pass side by side, wherever a device has both
};

// The slots of each of `devices`, in order. Every slot occurs once, and none starts before its inputs are
// there. `spec` has at least one stage on every device; a job without a pipeline has one stage on one device.
std::vector<std::vector<TimedSlot>> pipeline_schedule(const PipelineSpec& spec, int devices,
                                                      int micro_batches, Turns turns = Turns::kSingle);

}  // namespace hyperrun
