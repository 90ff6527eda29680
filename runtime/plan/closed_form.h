// What a step would take under a strategy, from the pieces of one micro-batch (pieces.h): a formula a
// schedule, nothing is walked. With p devices of a pipeline, m micro-batches, v stages a device, F and B the
// passes of one device, W what of B is for gradients of weights:
//
//   gpipe, 1f1b   the fill up to a device, m (F + B) of it, the way back: (p-1)(F+B) idle (Narayanan et al.
//                 2021)
//
//   interleaved   fill and way back are those of one stage of v; where the last m mod p are too few to fill
//                 the way through one stage of each device, every stage but one waits for the rest of it
//
//   zero_bubble   the way back is that of gradients of activations; those of weights fill it: (p-1)(F+B-2W)
//                 idle (ZB-H1; Qi et al. 2024)
//
// of whichever device comes out longest. Before that lies what begins a step, behind it the exchange of
// gradients, of which the last backward pass hides what it can, and the update.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/ir/job.h"
#include "runtime/ir/machine.h"
#include "runtime/plan/lying.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

class PipelineDevices;

// Tensors that a policy of memory may move. `empty`: bytes of them that are room for rows of experts which
// are not expected to exist, and are not moved.
struct Movable {
  std::int64_t bytes = 0, tensors = 0, empty = 0;
};

struct Forecast {
  double time = 0;   // ns of a step, as it will be simulated, nearly
  double bound = 0;  // ns; no simulation of it is shorter, in whatever order its axes lie
  // ns; nor of it with more layers that recompute more, within HBM. 0: nobody asked for it.
  double bound_of_more = 0;
  // Of the device that the time is of, ns: what it computes, what it waits for in its passes, for the
  // pipeline, what comes once a step, and transfers to and from the pool that nothing hides.
  double computing = 0, exposed = 0, bubble = 0, once = 0, transfer = 0;
  std::int64_t memory = 0;        // bytes of HBM of the fullest device, nearly
  std::int64_t least_memory = 0;  // bytes; it takes no less without a policy of memory
  std::int64_t mean = 0;          // bytes of all devices on average: what beyond HBM they share
  std::int64_t least_mean = 0;    // bytes; no less under any policy: what is kept may be made again
  std::int64_t here = 0;          // bytes that no policy moves, of the device that has most, nearly
  std::int64_t least_here = 0;    // bytes; it takes no less HBM under any policy
  // What this device uses over the step, no less than `memory`, by how often it does: once (the optimizer's;
  // of it `masters` at the step's begin as well, which products have copies of), in a forward and a backward
  // pass of each micro-batch (weights), in a backward pass (gradients), what micro-batches keep, and the
  // rest.
  Movable optimizer, masters, weights, gradients, kept;  // `kept`: that was not exchanged, all at once
  std::int64_t stays = 0;                                // bytes of the rest, which no policy moves
  std::int64_t largest_movable = 0;                      // bytes of a tensor of these
  // Times that a step goes through all of a device's weights: each micro-batch does, but of several stages a
  // device each is used by as many micro-batches in a row as the pipeline has devices; and through what is
  // kept at once.
  double sweeps = 1, sweeps_of_kept = 1;
  // The same, at least: where gradients of weights are put off, those of several micro-batches may be in a
  // row.
  double least_sweeps = 1;
  double forward = 0, backward = 0;  // ns of all these passes, of the device that the time is of
  double ahead = 1;                  // share of its forward passes that no backward pass comes between
  std::int64_t least_swept = 0;      // bytes of weights and gradients that a backward sweep of a device uses
  std::int64_t used() const { return optimizer.bytes + weights.bytes + gradients.bytes + kept.bytes + stays; }
};

// Bound and least memory alone, from the pieces of the same strategy without its data axis and ZeRO: what
// these bring can only be more. With `lying` the bound has what they bring to the layers at least.
Forecast least_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                    const LayersPieces& pieces, const Lying* lying = nullptr);
// With devices that are known already (pipeline_devices.h).
Forecast least_form(const Strategy& strategy, std::int32_t micro_batches, const LayersPieces& pieces,
                    const PipelineDevices& devices);

// ns; a bound of the strategy with as many layers that recompute more or with more of them; `pieces` have
// these. With `lying` they are without data axis and ZeRO, else the strategy's own.
double bound_of_more(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, const Lying* lying);

// `message`: ns from stage to stage.
Forecast closed_form(const Strategy& strategy, const ModelSpec& model, std::int32_t micro_batches,
                     const LayersPieces& pieces, double message);

}  // namespace hyperrun
