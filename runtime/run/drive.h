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
  int ranks = 0;  // processes that host the devices; 0: ranks_for() chooses

  // Whether the allocation alone says where devices run. Arguments for mpirun may name other hosts.
  bool by_allocation() const { return allocation && file.empty() && mpirun_args.empty(); }
  // Whether all devices are known to be on this host.
  bool only_this_host() const {
    return file.empty() && mpirun_args.empty() && (!allocation || allocation->this_host_alone);
  }
};

// The number of ranks for so many devices on this host: one for each while there are cores. Beyond that a
// rank hosts several: devices that take turns in a process cost less than processes that take turns on a
// core.
int ranks_of_this_host(int devices);
// On other hosts there are as many as these have slots, or an allocation has tasks, and one for each device
// at most.
int ranks_for(int devices, const Hosts& hosts);
// The same. Throws kUsage if the user wants more ranks than devices, kTooFewRanks if more than the hosts
// take.
int require_ranks(int devices, const Hosts& hosts);

// The options of a controller for the job. `secret` authenticates the ranks.
control::ControllerOptions controller_options(const Job& job, int ranks, const std::string& secret);

// Starts mpirun with the job's devices, and runs the driver until it has no work left. `name` is the ranks'
// argument in a list of processes. Throws the errors of process::require_program.
// `fault`: one for a device to commit as it starts.
control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver,
                       const Hosts& hosts = {}, const std::optional<FaultSpec>& fault = {});

}  // namespace hyperrun
