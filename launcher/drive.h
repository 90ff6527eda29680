#pragma once

#include "runtime/control/controller.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// Starts mpirun on this host with the session's devices, and drives them until the driver has nothing left.
// Throws what control::require_program does.
control::Outcome drive(const Session& session, control::Driver& driver);

}  // namespace hyperrun
