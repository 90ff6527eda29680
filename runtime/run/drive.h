#pragma once

#include <string>
#include <vector>

#include "runtime/control/controller.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// The hosts on which mpirun starts the devices. Without a file and arguments, all are on this host.
struct Hosts {
  std::string file;
  std::vector<std::string> mpirun_args;
  int ranks = 0;  // processes that host the devices; 0: ranks_for() chooses

  // Whether all devices are known to be on this host. Arguments for mpirun may name other hosts.
  bool only_this_host() const { return file.empty() && mpirun_args.empty(); }
};

// The number of ranks for so many devices on this host: one for each while there are cores. Beyond that a
// rank hosts several: devices that take turns in a process cost less than processes that take turns on a
// core.
int ranks_of_this_host(int devices);
// On other hosts, one for each device.
int ranks_for(int devices, const Hosts& hosts);

// The options of a controller for the job. `secret` authenticates the ranks.
control::ControllerOptions controller_options(const Job& job, int ranks, const std::string& secret);

// Starts mpirun with the job's devices, and runs the driver until it has no work left. `name` is the ranks'
// argument in a list of processes. Throws the errors of process::require_program.
control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver,
                       const Hosts& hosts = {});

}  // namespace hyperrun
