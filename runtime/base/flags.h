// The environment variables that hyperrun reads, all of them.
#pragma once

#include <string>

namespace hyperrun {

struct Flags {
  std::string dump_dir;    // HYPERRUN_DUMP: each phase of the compiler is written there as text
  std::string log_level;   // HYPERRUN_LOG: trace, debug, info, warn, error (default info)
  std::string controller;  // HYPERRUN_CONTROLLER: host:port, set by the launcher for rank 0
  std::string secret;      // HYPERRUN_SECRET: the run's secret, set by the launcher for rank 0
};

// Read once, at the first call.
const Flags& flags();

}  // namespace hyperrun
