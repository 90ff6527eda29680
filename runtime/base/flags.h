// All environment variables that hyperrun reads.
#pragma once

#include <string>

namespace hyperrun {

struct Flags {
  std::string dump_dir;    // HYPERRUN_DUMP: directory for the graph and Programs after each phase, as text
  std::string log_level;   // HYPERRUN_LOG: trace, debug, info, warn, error (default info)
  std::string controller;  // HYPERRUN_CONTROLLER: host:port, set by the launcher for rank 0
  std::string secret;      // HYPERRUN_SECRET: the run's secret, set by the launcher for rank 0
  std::string fault;       // HYPERRUN_FAULT: a fault of the start, set by the launcher (run.chaos)
};

// The environment is read once, at the first call.
const Flags& flags();

}  // namespace hyperrun
