// Which hosts of a host file still take processes: each is asked for its name, by mpirun itself, so that
// whatever reaches hosts for a run (ssh, another agent, Slurm) is asked.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/process/hostfile.h"

namespace hyperrun::process {

struct Reached {
  HostLine host;
  std::string name;  // as the host calls itself; empty: it did not answer
};

// Asks all hosts at once, and waits `limit` at most. `mpirun_args` are the user's.
std::vector<Reached> reach_hosts(const std::vector<HostLine>& hosts,
                                 const std::vector<std::string>& mpirun_args,
                                 std::chrono::milliseconds limit);

}  // namespace hyperrun::process
