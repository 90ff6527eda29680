// How long an instruction lasts on the modelled supernode, when nothing else asks for what it uses.
#pragma once

#include "collectives/selection.h"
#include "runtime/base/units.h"
#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Throws kBadValue when a rate is not a number from 1000 a second, or a latency not one from 0 to 1 s.
void check_rates(const SupernodeSpec& spec);

// Compute: launch + the longer of operations / rate of its stream and bytes / HBM bandwidth. A collective:
// launch + the time of its algorithm (collectives/cost.h) over links that are all alike; a byte is reduced
// at the speed at which HBM reads two and writes one.
// `shape`: how the collective's group lies on hosts; unused otherwise. Never negative; rounded up to
// whole ns. Throws kBadValue when it would be more than a day.
Nanos duration(const Instr& instr, const Mesh& mesh, const GroupShape& shape, const SupernodeSpec& spec);

}  // namespace hyperrun
