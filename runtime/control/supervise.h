// The controller as mpirun's parent: starts the devices, runs, and leaves nothing behind.
#pragma once

#include "runtime/control/controller.h"
#include "runtime/process/launch.h"

namespace hyperrun::control {

// Starts the launcher, runs the controller to the end of the run, and ends the launcher: it is given a
// moment to end by itself and is then killed, which ends every rank, here and on other hosts, within a
// second. Never waits for it without a limit. A launcher that fails before its devices have joined is
// the outcome's error, with the end of what it said.
Outcome supervise(Controller& controller, Driver& driver, const LaunchCommand& launcher);

}  // namespace hyperrun::control
