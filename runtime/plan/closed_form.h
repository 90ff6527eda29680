// The closed form: time and memory of a step from the layer profiles of one micro-batch, by a formula for
// each schedule, without simulation. Symbols: p devices in a pipeline, m micro-batches, v chunks a device, F
// and B the passes of one device, W the part of B for weight gradients.
//
//   gpipe, 1f1b   fill + m (F + B) + drain, idle (p-1)(F+B) (Narayanan et al. 2021)
//
//   interleaved   fill and drain are those of one chunk. If the last m mod p micro-batches cannot fill a
//                 round, each chunk but one waits for the rest of the round trip.
//
//   zero_bubble   the drain has no weight gradients, and these fill it: idle (p-1)(F+B-2W)
//                 (ZB-H1; Qi et al. 2024)
//
// The slowest device counts. The work that begins a step comes before. The gradient exchange, as far as the
// last backward pass does not hide it, and the update come after.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/ir/job.h"
#include "runtime/ir/machine.h"
#include "runtime/plan/axis_placement.h"
#include "runtime/plan/layer_profile.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

class PipelineDevices;

// Tensors that a memory policy may move. `empty`: bytes of padding for rows of experts, which are not moved.
struct Movable {
  std::int64_t bytes = 0, tensors = 0, empty = 0;
};

struct Forecast {
  double time = 0;   // expected step time, ns
  double bound = 0;  // lower bound of the step time in any axis order, ns
  // Lower bound with any number of extra recomputing layers that fits HBM, ns. 0: not computed.
  double bound_with_extra = 0;
  // Parts of `time` on the slowest device, ns: computing, exposed communication, bubble, work done once a
  // step, exposed transfers.
  double computing = 0, exposed = 0, bubble = 0, once = 0, transfer = 0;
  std::int64_t memory = 0;        // HBM of the fullest device, bytes
  std::int64_t least_memory = 0;  // lower bound of HBM without offloading, bytes
  std::int64_t mean = 0;          // mean over devices, bytes; the pool takes what exceeds HBM
  // Lower bound of `mean` under any policy; kept activations may be rematerialised.
  std::int64_t least_mean = 0;
  std::int64_t fixed = 0;        // bytes that no policy moves, on the device with the most
  std::int64_t least_fixed = 0;  // lower bound of HBM under any policy, bytes
  // Bytes of this device by how often a step uses them, `memory` at least in all. Once: `optimizer`, of which
  // the `masters` are also used at the begin (products read copies). In both passes of each micro-batch:
  // `weights`. In each backward pass: `gradients`. `kept`: movable activations of all micro-batches in
  // flight.
  Movable optimizer, masters, weights, gradients, kept;
  std::int64_t immovable = 0;        // bytes that no policy moves
  std::int64_t largest_movable = 0;  // bytes of the largest movable tensor
  // How often a step sweeps all weights of a device: once for each micro-batch; with several chunks p
  // micro-batches in a row share one sweep. `sweeps_of_kept`: the same for the activations in flight.
  double sweeps = 1, sweeps_of_kept = 1;
  // Lower bound of `sweeps`. Deferred weight gradients of several micro-batches may share a sweep.
  double least_sweeps = 1;
  double forward = 0, backward = 0;  // ns of all passes of that device
  double warmup_share = 1;           // share of its forward passes that no backward pass interrupts
  std::int64_t least_swept = 0;      // bytes of weights and gradients in one backward sweep
  std::int64_t used() const {
    return optimizer.bytes + weights.bytes + gradients.bytes + kept.bytes + immovable;
  }
};

// Lower bounds only. `profiles`: of the strategy without data axis and ZeRO, which can only add to them. With
// `placement` the bound includes what these add to the layers at least.
Forecast closed_form_bound(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                           const StepProfiles& profiles, const AxisPlacement* placement = nullptr);
// The same for devices that are known already (pipeline_devices.h).
Forecast closed_form_bound(const Strategy& strategy, std::int32_t micro_batches, const StepProfiles& profiles,
                           const PipelineDevices& devices);

// Lower bound, ns, of the strategy with its number of extra recomputing layers or any larger one;
// `profiles.extra` is set. With `placement` the profiles are without data axis and ZeRO, otherwise the
// strategy's own.
double bound_with_extra(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                        const StepProfiles& profiles, const AxisPlacement* placement);

// Expected time and memory. `message`: ns from stage to stage.
Forecast closed_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const StepProfiles& profiles, double message);

}  // namespace hyperrun
