#pragma once

#include "runtime/ir/program.h"

namespace hyperrun {

// Numbers the instructions in their streams and adds the fewest waits that order every two which touch
// the same address, one of them writing. By addresses and not by buffers: a place that is used again
// waits for its former tenant.
void add_events(Program& program);

// The same where each buffer has a place of its own, and is touched as a whole.
void add_events_apart(Program& program);

}  // namespace hyperrun
