#pragma once

#include <string>
#include <vector>

#include "runtime/control/controller.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// Where mpirun starts the devices: without a file and arguments, all on this host.
struct Hosts {
  std::string file;
  std::vector<std::string> mpirun_args;

  // As far as can be told: the arguments may name hosts.
  bool one() const { return file.empty() && mpirun_args.empty(); }
};

control::ControllerOptions controller_options(const Job& job, const std::string& secret);

// Starts mpirun with the job's devices, and drives them until the driver has nothing left. `name` is what
// they are called in a list of processes. Throws what process::require_program does.
control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver,
                       const Hosts& hosts = {});

}  // namespace hyperrun
