// Diagnostics go to standard error through spdlog; results go to standard output by whoever owns it.
#pragma once

#include <string_view>

namespace hyperrun {

// who: "controller" or "device 3"; it opens every line. The level comes from HYPERRUN_LOG.
void init_log(std::string_view who);

}  // namespace hyperrun
