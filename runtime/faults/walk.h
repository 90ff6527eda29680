// One run under one policy through one history of faults, from event to event: a fault, a repair, the end of
// a phase. Between two events everything is a formula, so that a month on 16,384 devices takes a millisecond.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/faults/costs.h"
#include "runtime/faults/fault_model.h"
#include "runtime/faults/fault_trace.h"
#include "runtime/faults/policy.h"

namespace hyperrun {

// Where the time of a run went, in seconds. The parts add up to the horizon.
struct FaultOutcome {
  double useful = 0;    // steps that last, as long as they take on all devices
  double slower = 0;    // what these and lost steps took more on fewer devices
  double saving = 0;    // by which saves and copies delayed steps
  double lost = 0;      // steps that were undone by a fault
  double noticing = 0;  // until a loss is known and, where a person has to, somebody acts
  double waiting = 0;   // for repairs
  double starting = 0;  // processes, compiling, joining
  double reading = 0;   // the state
  double faults = 0;    // count of those that interrupted the run
  double changes = 0;   // count of returns to more devices, planned

  double total() const { return useful + slower + saving + lost + noticing + waiting + starting + reading; }
};

// What a walk goes through. `save_every`: steps between two saves; of a policy with copies, between two
// copies.
struct FaultWalk {
  const FaultModel& spec;
  const FaultPolicy& policy;
  FaultedRun run;
  FaultCosts costs;
  std::int64_t save_every = 1;
};

// `faults`: those of the run's devices and the spec's spares. A policy without spares is hit by the first
// `run.devices` only.
FaultOutcome walk(const FaultWalk& what, std::span<const Fault> faults);

}  // namespace hyperrun
