// The hosts that Slurm has given to the job in which this process runs. An mpirun without a host file starts
// its ranks there, by srun, wherever it is called itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/process/hostfile.h"
#include "runtime/process/launch.h"

namespace hyperrun::process {

struct Allocation {
  std::string nodes;  // as Slurm writes them: "node[1-2]"
  std::int32_t node_count = 1;
  std::string tasks_per_node;  // as Slurm writes them: "2(x2),1"
  std::int64_t tasks = 0;      // their sum, which is mpirun's number of slots
  bool this_host_alone = false;
};

// nullopt: this process runs in no allocation. Without SLURMD_NODENAME, as under salloc on a login node, a
// single node is compared with `host`.
std::optional<Allocation> slurm_allocation(const GetEnv& env, const std::string& host);
std::optional<Allocation> slurm_allocation();

// The nodes with their tasks as slots, in Slurm's order. Empty if the lists are not as Slurm writes them.
std::vector<HostLine> hosts_of(const Allocation& allocation);

// Throws kTooFewRanks if an allocation of several nodes has fewer tasks than the run has ranks: mpirun would
// put the rest on its nodes silently.
void require_tasks(const Allocation& allocation, std::int32_t ranks);

}  // namespace hyperrun::process
