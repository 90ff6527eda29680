// What a user can say of a run besides its job.
#pragma once

#include <string>
#include <vector>

namespace hyperrun {

struct RunArguments {
  std::string job;
  std::string hostfile;                  // for mpirun; empty: this host
  std::vector<std::string> mpirun_args;  // further ones
  std::string directory;                 // instead of run.directory
  std::string resume;                    // instead of run.resume
  bool quiet = false;                    // no progress
  std::vector<std::string> command_line;
};

}  // namespace hyperrun
