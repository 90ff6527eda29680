// The options of `hyperrun JOB`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperrun {

struct RunArguments {
  std::string job;
  std::string hostfile;                  // mpirun's file of hosts; empty: this host
  std::vector<std::string> mpirun_args;  // further arguments for mpirun
  int ranks = 0;                         // processes that host the devices; 0: the run chooses
  std::string directory;                 // replaces run.directory
  std::string resume;                    // replaces run.resume
  std::optional<std::int32_t> restarts;  // replaces run.restarts
  bool quiet = false;                    // prints no progress
  std::vector<std::string> command_line;
};

}  // namespace hyperrun
