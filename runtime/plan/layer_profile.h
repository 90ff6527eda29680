// Layer profiles: times and bytes of one layer's forward and backward pass, of the embedding and the head,
// and of the update, on one device. They are read from a Program that the compiler makes of a model of few
// layers under the same strategy. So every operator, layout and collective is the one that would be executed.
//
// `time` is what a pass adds to a step between passes of its like. `bound` is never more: the longest path
// from the first product of the pass to that of the next one, if everything issued before has ended and
// streams are in order (the longest path of a max-plus system; Baccelli et al., Synchronization and
// Linearity, 1992).
//
//   cube   |first product ... last product| first product of the next layer
//   comm        |gather| |reduce|
//          |<----------- bound ---------->|
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/graph.h"
#include "runtime/ir/program.h"
#include "runtime/plan/parametric_step.h"

namespace hyperrun {

struct PassProfile {
  double time = 0;       // ns
  double bound = 0;      // ns, if a pass of the same kind follows
  double end_bound = 0;  // ns to the end of the last product; for a pass that ends the run of layers
  // Time until the last result is there that another stage waits for, ns. Backward passes only; no stage
  // waits for weight gradients.
  double handoff_bound = 0;
  // Time at the begin of a backward pass that does not depend on the next layer's gradient, ns:
  // rematerialisation, for example. If that gradient comes from another stage, the prologue overlaps with the
  // wait. `prologue` is a part of `time`, `prologue_bound` of `bound`.
  double prologue = 0, prologue_bound = 0;
  // Work of each stream alone, ns: a lower bound, as a stream runs one instruction at a time.
  std::array<double, kStreams> busy{}, busy_bound{};
  bool operator==(const PassProfile&) const = default;
};

// One of `n` equal parts of `bytes` (fewer than 2^52), rounded down. In this range division of doubles rounds
// down correctly, and it is several times as fast as that of 64-bit integers.
inline std::int64_t part_of(std::int64_t bytes, std::int32_t n) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) / n);
}

// State that lives for the whole step, bytes of a device.
struct StateBytes {
  std::int64_t copies = 0;   // copies of weights in the format of products
  std::int64_t weights = 0;  // the optimizer's weights
  std::int64_t moments = 0;  // the optimizer's moments
  std::int64_t gradients = 0;
  std::int64_t constants = 0;
  std::int64_t all() const { return copies + weights + moments + gradients + constants; }
  // Lower bound of the state with this ZeRO stage over `devices`, if *this is the state without ZeRO. If
  // there are copies, the optimizer's weights are split like the moments.
  std::int64_t at_least(std::int32_t zero, std::int32_t devices) const;
  std::int64_t used() const { return copies > 0 ? copies : weights; }  // the weights that products read
  StateBytes operator-(const StateBytes& other) const;
  void add(const StateBytes& other, std::int64_t times);
  bool operator==(const StateBytes&) const = default;
};

// Lower bound of the gradient bytes that a device reduces along the data axes (shared_tensor_axes() in
// instr_attribution.h). The categories of weights are those of LayerProfile.
struct GradientBytes {
  std::int64_t usual = 0, wide = 0, expert = 0, narrow = 0;
  bool operator==(const GradientBytes&) const = default;
};

// A time that depends linearly on the still unknown time for a byte.
struct ScatterTime {
  double time = 0, bytes = 0;  // ns; bytes
  double at(double per_byte) const { return time + bytes * per_byte; }
  bool operator==(const ScatterTime&) const = default;
};

// `bound` and `end_bound` of a backward pass in which ZeRO scatters gradients.
struct ScatterPass {
  ScatterTime bound, end_bound;
  bool operator==(const ScatterPass&) const = default;
};

// A backward pass without its weight gradients, which a zero-bubble schedule defers. Times are in ns.
struct SplitPass {
  double time = 0, bound = 0, end_bound = 0;  // the remaining pass, as in PassProfile
  double weights = 0;                         // products of the weight gradients, lower bound
  double deferred = 0;   // weight gradients with the collectives that they wait for, layer after layer
  double exchanged = 0;  // the same, but no less than all collectives of the weight gradients
  bool operator==(const SplitPass&) const = default;
};

// Profile of layers that are alike. Times are ns of a device, sizes are bytes of a device.
struct LayerProfile {
  PassProfile forward, backward;
  // Two lower bounds of `backward` with ZeRO 2 or 3. The profile itself is made without a data axis.
  std::array<ScatterPass, 2> scattered{};
  SplitPass split;              // split form of `backward`; for the head, of `forward`
  double weight_gradients = 0;  // part of `backward` that makes weight gradients
  // Upper bound of the work that the first micro-batch saves on each stream, as it has no gradient sum to add
  // to.
  std::array<double, kStreams> saved{};
  double exchange = 0;               // gradient collectives, once a step
  double optimizer = 0;              // vector work of the update
  double redistribution = 0;         // collectives after the update
  double begin = 0, begin_comm = 0;  // vector work and collectives before the first micro-batch
  StateBytes state;
  StateBytes tensors;  // numbers of tensors, not bytes, of `state`
  // Part of `state` that is split over the expert axis. ZeRO cannot split it along this axis again.
  StateBytes expert;
  // Other parts of `state`. `wide` weights have the model's width and a feed-forward width, and ZeRO may
  // split either. `narrow` weights lack the model's width, and ZeRO may split nothing.
  StateBytes wide, narrow;
  GradientBytes own_gradients;
  double expert_optimizer = 0, expert_begin = 0;
  std::int64_t kept_tensors = 0;     // tensors in `kept` that can move
  std::int64_t kept_empty = 0;       // padding for rows of experts in the movable part of `kept`
  std::int64_t largest_movable = 0;  // the largest tensor of state or `kept` that can move
  std::int64_t kept = 0;  // activations of a micro-batch kept from its forward to its backward pass
  // Inputs of deferred weight gradients of a micro-batch, from its backward pass on.
  std::int64_t deferred = 0;
  // Communication buffers in `kept` and `deferred`, which no memory policy moves.
  std::int64_t kept_fixed = 0, deferred_fixed = 0;
  // Reduced gradients that stay in HBM until the global norm is known.
  std::int64_t gradients_fixed = 0;
  // Other gradients that one sum-of-squares instruction reads.
  std::int64_t squared = 0;
  // The largest working set of one update, without communication buffers.
  std::int64_t largest_update = 0;
  // The most bytes that one instruction of the passes uses, all of which must be in HBM under any policy.
  // Weight gradients are excluded, as their size depends on ZeRO.
  std::int64_t largest_instr = 0;
  std::int64_t forward_peak = 0, backward_peak = 0;  // peak of temporary buffers and the pass's own `kept`
  std::int64_t fixed_peak = 0;                       // the part of either peak that no policy moves
  bool operator==(const LayerProfile&) const = default;
};

// Profile of a step. Layer kinds are in the model's order: dense layers, then layers with experts.
struct StepProfile {
  std::vector<LayerProfile> kinds;
  LayerProfile first, last;  // embedding and head
  // State of weights that both the embedding and the head use. `first_too` is state of the head that the
  // first device of a pipeline also holds, `last_too` state of the embedding that the last one also holds.
  StateBytes first_too, last_too;
  double at_the_end = 0;  // ns from the last gradient to the first update: the global norm
  // True if each update waits for the norm of all gradients. Otherwise the compiler may run updates during
  // the backward pass (runtime/compile/early_updates.h).
  bool update_last = true;
  std::int64_t message = 0;  // bytes that a layer hands to the next
  bool operator==(const StepProfile&) const = default;
};

// Profiles of a strategy's layers.
struct StepProfiles {
  const StepProfile* base = nullptr;
  const StepProfile* extra = nullptr;  // layers with stronger recomputation; may be null
};

// The first micro-batch, one between others, and the last.
inline constexpr int kProbeMicroBatches = 3;

// Extracts profiles from a probe step of kProbeMicroBatches. The structure of the step (which instruction
// belongs where, what waits for what) is analysed once, in the constructor. profile() then reads times and
// bytes for any sizes.
class ProfileExtractor {
 public:
  // `step` must not be frozen yet, and must outlive the extractor. `kind_of`: the kind of each layer, in
  // ascending order; at least two layers of each kind.
  ProfileExtractor(const ParametricStep& step, std::vector<int> kind_of);
  ~ProfileExtractor();

  // Profile for the present sizes of the step, which is frozen. `durations`: expected time of each original
  // instruction, ns. `least`: their lower bounds, no value above that in `durations`.
  StepProfile profile(const std::vector<double>& durations, const std::vector<double>& least) const;

 private:
  class Extraction;
  struct Facts;
  std::unique_ptr<Facts> facts_;
};

}  // namespace hyperrun
