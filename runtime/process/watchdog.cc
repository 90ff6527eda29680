#include "runtime/process/watchdog.h"

#include <unistd.h>

#include <system_error>
#include <thread>
#include <utility>

namespace hyperrun::process {

void end_process_after(std::chrono::milliseconds grace, int status, std::function<void(int)> terminate) {
  if (!terminate) terminate = [](int s) { _exit(s); };
  try {
    std::thread([grace, status, terminate] {
      std::this_thread::sleep_for(grace);
      terminate(status);
    }).detach();
  } catch (const std::system_error&) {  // no thread can be had: rather end early than never
    terminate(status);
  }
}

}  // namespace hyperrun::process
