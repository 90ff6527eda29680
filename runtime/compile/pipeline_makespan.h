// The makespan of all roles together: a stage of a pipeline waits for messages of others.
#pragma once

#include "runtime/base/units.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// How long Program number `program` of every role takes, run by one device of each role. Programs have
// offsets and events. Streams run in order; a message or a collective begins when all members have reached
// it. Feeding instructions takes no time, and devices share no cores.
Nanos pipeline_makespan(const Plan& plan, std::size_t program, const Machine& machine);

}  // namespace hyperrun
