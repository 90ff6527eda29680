// What transfers to and from a tier beyond HBM add to a step (docs/offload.md says how they are planned).
//
// What is beyond has to be so in every pass, as HBM is full in each: a tensor that a pass uses comes and goes
// within it. So transfers hide behind the pass that they belong to, and behind no other:
//
//   forward    brings weights; what is kept for the backward pass leaves
//   backward   brings weights, gradients that it adds to, and what was kept; gradients leave
//   the rest   of the optimizer's state, which a step uses once, at its end, nothing is hidden, as there is
//              nothing else to do; nor of the weights that it keeps, which come at the step's begin as well
//
// Where a device has several stages its forward passes come between backward passes, but for those that
// fill the pipeline: there transfers of both hide behind both. Each transfer takes the tier's latency too.
//
// What a plan makes again instead (docs/offload.md) is not in it: where activations of few micro-batches are
// all that is too much, the forecast is too long.
#pragma once

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"
#include "runtime/plan/closed_form.h"

namespace hyperrun {

// The forecast of the same strategy where what does not fit into `hbm` lies beyond it. What costs least time
// goes first. What can neither stay nor move is for placing to refuse.
Forecast with_transfers(const Forecast& forecast, Tier tier, const Machine& machine, Bytes hbm);

// ns that a step takes at least: a sweep finds no more in HBM than fits there, and all sweeps but the first
// find gradients to add to (what is used in turn is best kept as far as there is room; Belady 1966).
// `tier`: the fastest that there is.
double least_transfers(const Forecast& forecast, const Storage& tier, Bytes hbm);

}  // namespace hyperrun
