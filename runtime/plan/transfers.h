// Time that transfers to and from a lower tier add to a step (docs/offload.md says how they are planned).
//
// HBM is full in every pass, so what lies beyond it must be moved in every pass that uses it. Transfers
// overlap only with their own pass:
//
//   forward    prefetches weights; stores kept activations
//   backward   prefetches weights, gradient sums and kept activations; stores gradient sums
//   update     moves the rest of the optimizer state. It is used once, at the end, and nothing overlaps. The
//              optimizer's weights are also needed once at the begin of the step.
//
// With several chunks a device, forward and backward passes alternate except during warm-up, and transfers of
// both overlap with both. Each transfer also takes the latency of the tier.
//
// Rematerialisation (docs/offload.md) is not modelled. If activations of few micro-batches are all that does
// not fit, the forecast is too long.
#pragma once

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/plan/closed_form.h"

namespace hyperrun {

// The forecast with everything that does not fit `hbm` in the lower tier, the cheapest bytes first. What can
// neither stay nor move is left for placement to refuse.
Forecast with_transfers(const Forecast& forecast, Tier tier, const Machine& machine, Bytes hbm);

// Lower bound of the step time, ns: each sweep finds no more in HBM than fits there, and all sweeps but the
// first add to gradient sums. For cyclic use it is best to keep as much as fits (Belady 1966). `tier`: the
// fastest one.
double least_transfers(const Forecast& forecast, const Storage& tier, Bytes hbm);

}  // namespace hyperrun
