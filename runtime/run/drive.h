#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/control/controller.h"
#include "runtime/ir/job.h"
#include "runtime/process/allocation.h"
#include "runtime/process/hostfile.h"

namespace hyperrun {

// The hosts on which mpirun starts the devices. Without a file and arguments, they are those of Slurm's
// allocation if there is one, else this host.
struct Hosts {
  std::string file = process::default_hostfile();
  std::vector<std::string> mpirun_args;
  std::optional<process::Allocation> allocation = process::slurm_allocation();

  // Whether the allocation alone says where devices run. Arguments for mpirun may name other hosts.
  bool by_allocation() const { return allocation && file.empty() && mpirun_args.empty(); }
  // Whether all devices are known to be on this host.
  bool only_this_host() const {
    return file.empty() && mpirun_args.empty() && (!allocation || allocation->this_host_alone);
  }
};

// The options of a controller for the job. `secret` authenticates the ranks.
control::ControllerOptions controller_options(const Job& job, const std::string& secret);

// Starts mpirun with the job's devices, and runs the driver until it has no work left. `name` is the ranks'
// argument in a list of processes. Throws the errors of process::require_program.
control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver,
                       const Hosts& hosts = {});

}  // namespace hyperrun
