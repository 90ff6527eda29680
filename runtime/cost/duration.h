// How long an instruction lasts on the modelled supernode, when nothing else asks for what it uses.
#pragma once

#include "runtime/base/units.h"
#include "runtime/cost/cost.h"
#include "runtime/ir/job.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Throws kBadValue when a rate is not a number from 1000 a second, or a latency not one from 0 to 1 s.
void check_rates(const SupernodeSpec& spec);

// Compute: launch + the longer of operations / (rate of its stream x efficiency) and bytes / (HBM bandwidth x
// efficiency). A transfer: latency + bytes / bandwidth of its tier. A collective: launch + the time of its
// algorithm (collectives/cost.h) over the widest level that it crosses inside a host and between hosts; where
// devices share a way out of their unit, each has its part of it, as all groups along the same axes come at
// once. A byte is reduced at the speed at which HBM reads two and writes one. Never negative; rounded up to
// whole ns. Throws kBadValue when it would be hours.
Nanos duration(const Instr& instr, const Mesh& mesh, const Where& where, const Machine& machine);

// What was reckoned for it, in whole ns; throws as above.
Nanos checked_duration(double nanos, const Instr& instr, const Machine& machine);

}  // namespace hyperrun
