// A watchdog that ends this process if it has not ended by itself.
#pragma once

#include <chrono>
#include <functional>

namespace hyperrun::process {

// Calls terminate(status), by default _exit, after `grace`, from a thread of its own. Only the end of the
// process stops it.
void end_process_after(std::chrono::milliseconds grace, int status, std::function<void(int)> terminate);

}  // namespace hyperrun::process
