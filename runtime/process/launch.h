// The start of a run's devices: the mpirun command line, and the detection of a launcher that has already
// started this process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::process {

struct LaunchSpec {
  std::int32_t ranks = 1;
  std::vector<std::string> program;  // argv of a rank
  // The controller's address and the secret go to the ranks in their environment, never in an argv. Empty:
  // there is no controller.
  std::string controller, secret;
  std::string fault;  // a fault for the ranks to commit as they start (runtime/rank/fault.h); empty: none
  std::string mpirun = "mpirun";
  std::string hostfile;                  // empty: this host only
  std::int32_t ranks_of_a_host = 0;      // the most of them; 0: as many as its slots, host by host
  std::vector<std::string> mpirun_args;  // the user's arguments, after ours
  bool root = false;                     // geteuid() == 0
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // added to our environment
};

LaunchCommand launch_command(const LaunchSpec& spec);

// The launcher that started this process. It must be asked for before MPI_Init.
enum class Launcher { kNone, kOpenMpi, kPmix };
using GetEnv = std::function<const char*(const char*)>;

// Throws kMpi if srun started several copies that cannot find each other (srun without --mpi=pmix): each
// would take itself for the whole run.
Launcher detect_launcher(const GetEnv& env);
Launcher detect_launcher();

// Sets MPI parameters that every rank needs. It must be called before MPI_Init, and never overrides the
// user's.
void set_mpi_defaults();

}  // namespace hyperrun::process
