// The process of one rank: it joins its controller, and hosts devices until the run ends.
#pragma once

#include <string>
#include <vector>

namespace hyperrun {

// Returns the exit status. `controller` is the command line, without the number of ranks, of the controller
// that rank 0 starts if the environment names none: a foreign mpirun or srun has started the ranks.
int run_rank(const std::vector<std::string>& controller);

}  // namespace hyperrun
