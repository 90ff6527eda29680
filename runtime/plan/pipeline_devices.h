// What each device of a pipeline does in a step, from the pieces of its layers (pieces.h). Those in its
// middle are alike, and looked at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/closed_form.h"
#include "runtime/plan/lying.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// What scattering gradients adds to the backward passes of layers, ns at least.
class LayersScattering {
 public:
  // `at_the_end`: to one of these layers as the last one of a pass.
  void add(double layers, double each, double at_the_end);
  // To so many passes. What comes behind the last layer of each waits for nothing of it: `ends` layers,
  // whichever have most, count no more than as the last one.
  double of(double passes, double ends) const;

 private:
  struct Alike {
    double layers = 0, each = 0;
  };
  // Layers of two kinds, some of which recompute more.
  std::array<Alike, 4> alike_{};
  std::size_t count_ = 0;
  double at_the_end_ = std::numeric_limits<double>::infinity();
};

// Bytes of a micro-batch that a stage keeps until its way back.
struct StagesKept {
  std::int64_t kept = 0, here = 0;
};

struct PipelineDevice {
  double forward = 0, backward = 0;              // of a micro-batch, all its stages
  double forward_bound = 0, backward_bound = 0;  // the same, at least
  double weight_gradients = 0;                   // of `backward`
  double split = 0, split_bound = 0;             // of `backward` without them
  double weights_bound = 0;                      // of their products
  double put_off_time = 0;                       // of these with what they wait for
  double exchanged = 0;                          // the same with all their collectives
  double forward_comm = 0;                       // of collectives, of `forward`
  double scattering_bound = 0;  // of a micro-batch, at least: what that adds to `backward_bound`
  // Of `backward` and its bound: what its stages compute before they need what the next stage hands on.
  double ahead = 0, ahead_bound = 0;
  double early_bound = 0;  // 0 or less: of its backward passes, what the stage before need not wait for
  double computing = 0;    // of forward and backward
  std::array<double, kStreams> busy{}, least_busy{};  // of both
  std::array<double, kStreams> saved{};               // at most, of the first micro-batch
  // Of the first of its stages, at least; `back_bound`: behind what it computes ahead.
  double fill_bound = 0, back_bound = 0;
  double exchange = 0, optimizer = 0, redistribution = 0, begin = 0, begin_comm = 0;  // once a step
  // As LayerPieces has them, ZeRO apart: of its layers, and of the ends.
  double whole_optimizer = 0, whole_begin = 0, spread_optimizer = 0, spread_begin = 0;
  StateBytes whole, spread;
  double one_exchange = 0;                      // of the layer whose gradients come last
  double least_exchange = 0, least_gather = 0;  // of its layers' gradients and weights, once a step
  double one_forward = 0;                       // of a layer, at least
  bool all_exchange = true;                     // its layers all communicate in their forward passes
  std::int64_t state = 0, kept = 0, peak = 0, here_peak = 0;
  std::int64_t end_kept = 0, end_peak = 0;  // behind the layers: `end_kept` is not in `kept`
  std::int64_t largest_kept = 0;            // of a layer
  std::int64_t put_off = 0;                 // of a micro-batch
  std::int64_t kept_here = 0, put_off_here = 0;
  StagesKept first_stage, last_stage;  // of `kept` and `kept_here`, where it has several
  std::int64_t gradients_here = 0, squared = 0, updated_at_once = 0;
  std::int64_t at_once = 0;                        // of any of its instructions, at least
  std::int64_t gradients = 0, end_gradients = 0;   // of `state`, at most; of what lies behind the layers
  std::int64_t copies = 0;                         // of `state`
  Movable once, masters, weights, summed, moving;  // Forecast has these; `moving`: of a micro-batch
  std::int64_t largest_movable = 0;
  std::int64_t least_swept = 0;   // weights and gradients, at least
  int deeper = 0;                 // layers that recompute more,
  bool may_be_deeper = false;     // or may do so
  std::int64_t first_copies = 0;  // of what the last micro-batch does not need for long
};

class PipelineDevices {
 public:
  void reserve(std::size_t devices, std::size_t distinct) {
    which_.reserve(devices), distinct_.reserve(std::min(devices, distinct));
  }
  // Makes one like the last, or another.
  void repeat() { which_.push_back(which_.back()); }
  PipelineDevice& add() {
    which_.push_back(distinct_.size());
    return distinct_.emplace_back();
  }

  std::size_t size() const { return which_.size(); }
  const PipelineDevice& operator[](std::size_t device) const { return distinct_[which_[device]]; }
  PipelineDevice& front() { return distinct_.front(); }
  // That is like no other.
  PipelineDevice& back() { return distinct_.back(); }
  const PipelineDevice& back() const { return distinct_.back(); }

  // Those that differ, in their order, and the number among them of each of a pipeline.
  std::vector<PipelineDevice>& distinct() { return distinct_; }
  const std::vector<PipelineDevice>& distinct() const { return distinct_; }
  const std::vector<std::size_t>& which() const { return which_; }

 private:
  std::vector<PipelineDevice> distinct_;
  std::vector<std::size_t> which_;
};

enum class Of : std::uint8_t { kStep, kBound, kBoundOfMore };

// `lying`: of bounds; may be null.
PipelineDevices devices_of(const Strategy& strategy, const ModelSpec& model, const LayersPieces& pieces,
                           Of of, const Lying* lying);
// Of a bound where `lying` is null, in three parts. The first is the same whatever ZeRO and schedule are,
PipelineDevices layers_on_devices(const Strategy& strategy, const ModelSpec& model,
                                  const LayersPieces& pieces);
// the second whatever ZeRO is,
PipelineDevices with_ends(PipelineDevices layers, const Strategy& strategy, const ModelSpec& model,
                          const LayersPieces& pieces);
// and what the third says stands in place of what it has said of another ZeRO.
void split_state(PipelineDevices& devices, const Strategy& strategy, const ModelSpec& model,
                 const LayersPieces& pieces);

}  // namespace hyperrun
