// A controller started by rank 0, under an mpirun or srun that is not ours.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hyperrun::control {

// The variable that names the descriptor on which a spawned controller tells its address.
inline constexpr const char* kAddressFd = "HYPERRUN_ADDRESS_FD";

struct SpawnedController {
  int pid = 0;
  std::string address;  // as Controller::address(); empty: it ended before it had one, and has said why
  int status = 0;       // then: its exit status
};

// Starts argv (argv[0] empty: this very binary) in a process group of its own and waits for its
// address. Throws kControl when it is silent for `seconds`. To be called before MPI_Init.
SpawnedController spawn_controller_process(
    std::vector<std::string> argv, const std::vector<std::pair<std::string, std::string>>& environment,
    double seconds = 20);

// In the spawned process: tells the address to the parent. Throws kControl when nobody asked.
void tell_address(const std::string& address);

// In rank 0, at the end: the controller's exit status, -1 if it does not end within `seconds`.
int wait_for_controller(const SpawnedController& controller, double seconds);

}  // namespace hyperrun::control
