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

  // Whether all devices are known to be on this host. Arguments for mpirun may name other hosts.
  bool only_this_host() const { return file.empty() && mpirun_args.empty(); }
};

// The options of a controller for the job. `secret` authenticates the ranks.
control::ControllerOptions controller_options(const Job& job, const std::string& secret);

// Starts mpirun with the job's devices, and runs the driver until it has no work left. `name` is the ranks'
// argument in a list of processes. Throws the errors of process::require_program.
control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver,
                       const Hosts& hosts = {});

}  // namespace hyperrun
