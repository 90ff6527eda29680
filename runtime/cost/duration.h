// The duration of an instruction on the modelled supernode, without contention.
#pragma once

#include "runtime/base/units.h"
#include "runtime/cost/cost.h"
#include "runtime/ir/job.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Throws kBadValue if a rate is below 1000 a second or no number, or a latency is outside 0 to 1 s.
void check_rates(const SupernodeSpec& spec);

// Compute:     launch + max(operations / (stream's rate x efficiency), bytes / (HBM bandwidth x efficiency))
// Transfer:    latency + bytes / bandwidth of its tier
// Collective:  launch + the time of its algorithm (collectives/cost.h) over the widest levels that it crosses
//              inside a host and between hosts. Devices that share a link out of their unit have equal parts
//              of it, as all groups along the same axes communicate at once. Reducing a byte takes the time
//              to read two bytes of HBM and write one.
//
// The result is rounded up to whole ns and never negative. Throws kBadValue if it would be hours.
Nanos duration(const Instr& instr, const Mesh& mesh, const Where& where, const Machine& machine);

// Rounds a computed duration up to whole ns; throws like duration().
Nanos checked_duration(double nanos, const Instr& instr, const Machine& machine);

}  // namespace hyperrun
