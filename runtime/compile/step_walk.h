// How long the devices of a plan take together: a stage of a pipeline waits for what others send.
#pragma once

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Of the Programs of one number, with places and events; one device of each role. In-order streams; a message
// or a collective begins when all have come to it. What hands instructions over, and cores that devices
// share, take no time.
Nanos length_together(const Plan& plan, std::size_t program, const Machine& machine);

}  // namespace hyperrun
