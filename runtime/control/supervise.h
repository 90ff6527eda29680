// The controller as mpirun's parent: it starts the devices, runs, and leaves nothing behind.
#pragma once

#include "runtime/control/controller.h"
#include "runtime/process/launch.h"

namespace hyperrun::control {

// Starts the launcher, runs the controller to the end of the run, and ends the launcher. The launcher gets a
// moment to end by itself and is then killed, which ends every rank, here and on other hosts, within a
// second. Every wait has a limit. If the launcher fails before its devices have joined, the outcome is that
// error, with the end of its output.
Outcome supervise(Controller& controller, tasks::Driver& driver, const process::LaunchCommand& launcher);

}  // namespace hyperrun::control
