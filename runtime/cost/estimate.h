// Estimated durations of instructions on one device without contention, for passes that compare alternatives
// before the whole machine is simulated.
#pragma once

#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Durations by instruction. A collective's begins when all members have reached it, and is that of the group
// that `device` is in.
std::vector<Nanos> estimate_durations(const Program& program, const Machine& machine, int device);

}  // namespace hyperrun
