// Diagnostics go to standard error through spdlog. Results go to standard output, without this log.
#pragma once

#include <string_view>

namespace hyperrun {

// Sets up the log of this process. `who` ("controller", "device 3") opens every line; the level comes from
// HYPERRUN_LOG.
void init_log(std::string_view who);

}  // namespace hyperrun
