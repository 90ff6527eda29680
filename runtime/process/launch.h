// How the devices of a run are started: the mpirun command line, and whether somebody else has started
// us already.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::control {

struct LaunchSpec {
  std::int32_t devices = 1;
  std::vector<std::string> program;  // argv of a device
  // Go to the devices in their environment, never in an argv; empty: they have no controller.
  std::string controller, secret;
  std::string mpirun = "mpirun";
  std::string hostfile;                  // empty: this host only
  std::vector<std::string> mpirun_args;  // of the user, after ours
  bool root = false;                     // geteuid() == 0
};

struct LaunchCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

LaunchCommand launch_command(const LaunchSpec& spec);

// Who started this process. To be asked before MPI_Init.
enum class Launcher { kNone, kOpenMpi, kPmix };
using GetEnv = std::function<const char*(const char*)>;

// Throws kMpi where srun started several copies that cannot find each other (srun without
// --mpi=pmix): each would take itself for the whole run.
Launcher detect_launcher(const GetEnv& env);
Launcher detect_launcher();

// Parameters that every rank needs and may still set for itself, before MPI_Init; never overrides
// the user's.
void set_mpi_defaults();

}  // namespace hyperrun::control
