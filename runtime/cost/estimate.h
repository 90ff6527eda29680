// How long each instruction of a Program lasts on one device when nothing holds it: for passes that weigh one
// thing against another before a whole machine is simulated.
#pragma once

#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// One an instruction; a collective's from when its group has met, as the group lies that `device` is in.
std::vector<Nanos> estimate_durations(const Program& program, const Machine& machine, int device);

}  // namespace hyperrun
