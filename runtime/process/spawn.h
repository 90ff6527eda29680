// A controller that rank 0 starts, under an mpirun or srun that is not ours.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hyperrun::process {

// Environment variable with the number of the descriptor on which a spawned controller writes its address.
inline constexpr const char* kAddressFd = "HYPERRUN_ADDRESS_FD";

struct SpawnedController {
  int pid = 0;
  std::string address;  // as Controller::address(); empty: it ended before it had one, and has said why
  int status = 0;       // its exit status in that case
};

// Starts argv (argv[0] empty: this very binary) in a process group of its own and waits for its address.
// Throws kControl if it is silent for `seconds`. It must be called before MPI_Init.
SpawnedController spawn_controller_process(
    std::vector<std::string> argv, const std::vector<std::pair<std::string, std::string>>& environment,
    double seconds = 20);

// Writes the address to the parent, in the spawned process. Throws kControl if the parent has not asked.
void tell_address(const std::string& address);

// Returns the controller's exit status, in rank 0 at the end; -1 if it does not end within `seconds`.
int wait_for_controller(const SpawnedController& controller, double seconds);

}  // namespace hyperrun::process
