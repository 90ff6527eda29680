// The end of a process that should have ended by itself.
#pragma once

#include <chrono>
#include <functional>

namespace hyperrun::control {

// From a thread of its own, `grace` from now: terminate(status), by default _exit. There is no way to
// call it off but to end the process.
void end_process_after(std::chrono::milliseconds grace, int status, std::function<void(int)> terminate);

}  // namespace hyperrun::control
