// Work and memory of each device of a pipeline in a step, from the profiles of its layers (layer_profile.h).
// Devices in the middle are equal, so each distinct device is computed once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/axis_placement.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Lower bound of the time that scattering gradients adds to backward passes, ns.
class LayersScatterBound {
 public:
  // Adds `layers` layers that cost `each`; `at_the_end` is the cost of the last layer of a pass.
  void add(double layers, double each, double at_the_end);
  // Total of `passes` passes. Nothing behind the last layer of a pass waits for its scatter. So the `ends`
  // most expensive layers count only as last layers.
  double of(double passes, double ends) const;

 private:
  struct Alike {
    double layers = 0, each = 0;
  };
  // Two layer kinds, each with and without extra recomputation.
  std::array<Alike, 4> alike_{};
  std::size_t count_ = 0;
  double at_the_end_ = std::numeric_limits<double>::infinity();
};

// Bytes of a micro-batch that a chunk keeps until its backward pass.
struct ChunkKept {
  std::int64_t kept = 0, fixed = 0;
};

struct PipelineDevice {
  double forward = 0, backward = 0;              // a micro-batch through all chunks
  double forward_bound = 0, backward_bound = 0;  // lower bounds of the same
  double weight_gradients = 0;                   // part of `backward`
  double split = 0, split_bound = 0;             // `backward` without weight gradients
  double weights_bound = 0;                      // lower bound of the products of weight gradients
  double deferred_time = 0;     // deferred weight gradients with the collectives they wait for
  double exchanged = 0;         // the same, no less than all their collectives
  double forward_comm = 0;      // collectives in `forward`
  double scattering_bound = 0;  // lower bound of what the scatter of a micro-batch adds
  // Parts of `backward` and its bound before the gradient of the next stage is needed.
  double prologue = 0, prologue_bound = 0;
  double handoff_saving = 0;  // 0 or less: end of backward passes that no other stage waits for
  double computing = 0;       // products and vector work of both passes
  std::array<double, kStreams> busy{}, busy_bound{};  // by stream, both passes
  std::array<double, kStreams> saved{};               // upper bound of what the first micro-batch saves
  // Lower bounds for the first chunk: until it hands on, and its backward pass without the prologue.
  double fill_bound = 0, back_bound = 0;
  double exchange = 0, optimizer = 0, redistribution = 0, begin = 0, begin_comm = 0;  // once a step
  // Sums of layers and ends before ZeRO is applied, as in LayerProfile.
  double whole_optimizer = 0, whole_begin = 0, expert_optimizer = 0, expert_begin = 0;
  StateBytes whole, expert;
  double one_exchange = 0;                      // the layer whose gradients come last
  double least_exchange = 0, least_gather = 0;  // gradients and weights of all layers, once a step
  double one_forward = 0;                       // lower bound of one layer
  bool all_exchange = true;                     // true if every layer communicates in its forward pass
  std::int64_t state = 0, kept = 0, peak = 0, fixed_peak = 0;
  std::int64_t end_kept = 0, end_peak = 0;  // head; `end_kept` is not part of `kept`
  std::int64_t largest_kept = 0;            // one layer
  std::int64_t deferred = 0;                // one micro-batch
  std::int64_t kept_fixed = 0, deferred_fixed = 0;
  ChunkKept first_chunk, last_chunk;  // `kept` and `kept_fixed` of the first and last of several chunks
  std::int64_t gradients_fixed = 0, squared = 0, largest_update = 0;
  std::int64_t largest_instr = 0;                  // the largest working set of one instruction
  std::int64_t gradients = 0, end_gradients = 0;   // upper bound of the part of `state`; the part of the head
  std::int64_t copies = 0;                         // part of `state`
  Movable once, masters, weights, summed, moving;  // see Forecast; `moving`: one micro-batch
  std::int64_t largest_movable = 0;
  std::int64_t least_swept = 0;    // lower bound of weights and gradients
  int extra_recompute_layers = 0;  // layers that recompute more
  bool may_have_extra = false;     // any number of layers may recompute more
  std::int64_t first_copies = 0;   // weight copies that the last micro-batch frees early
};

class PipelineDevices {
 public:
  void reserve(std::size_t devices, std::size_t distinct) {
    which_.reserve(devices), distinct_.reserve(std::min(devices, distinct));
  }
  // Appends a device equal to the last one. add() appends another.
  void repeat() { which_.push_back(which_.back()); }
  PipelineDevice& add() {
    which_.push_back(distinct_.size());
    return distinct_.emplace_back();
  }

  std::size_t size() const { return which_.size(); }
  const PipelineDevice& operator[](std::size_t device) const { return distinct_[which_[device]]; }
  PipelineDevice& front() { return distinct_.front(); }
  // The last device differs from all others.
  PipelineDevice& back() { return distinct_.back(); }
  const PipelineDevice& back() const { return distinct_.back(); }

  // Distinct devices in order; which()[d] is the index of device d among them.
  std::vector<PipelineDevice>& distinct() { return distinct_; }
  const std::vector<PipelineDevice>& distinct() const { return distinct_; }
  const std::vector<std::size_t>& which() const { return which_; }

 private:
  std::vector<PipelineDevice> distinct_;
  std::vector<std::size_t> which_;
};

enum class Estimate : std::uint8_t { kExpected, kLowerBound, kLowerBoundWithExtra };

// `placement`: for lower bounds; may be null.
PipelineDevices devices_of(const Strategy& strategy, const ModelSpec& model, const StepProfiles& profiles,
                           Estimate estimate, const AxisPlacement* placement);
// Lower bounds without placement, in three steps. The first does not depend on ZeRO or schedule.
PipelineDevices layers_on_devices(const Strategy& strategy, const ModelSpec& model,
                                  const StepProfiles& profiles);
// The second step does not depend on ZeRO.
PipelineDevices with_ends(PipelineDevices layers, const Strategy& strategy, const ModelSpec& model,
                          const StepProfiles& profiles);
// The third step replaces the state of an earlier ZeRO stage.
void split_state(PipelineDevices& devices, const Strategy& strategy, const ModelSpec& model,
                 const StepProfiles& profiles);

}  // namespace hyperrun
