// hyperrun sim of jobs of several programs, whose tasks are simulated and not one step of a Program.
#pragma once

#include "launcher/commands.h"

namespace hyperrun {

// Throws kUsage where something is asked for that only the step of one program has.
void require_options_of_tasks(const SimArguments& arguments);

}  // namespace hyperrun
