#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Numbers the instructions in their streams, and adds the fewest waits that order every two instructions
// which touch the same address, one of them writing. It compares addresses, not buffers: an instruction also
// waits for uses of an earlier buffer at the same address.
void add_events(Program& program);

// The same for a Program in which each buffer has an address range of its own.
void add_events_apart(Program& program);

}  // namespace hyperrun
