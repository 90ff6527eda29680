// Starts a run with mpirun as a child, or becomes the controller of ranks that a foreign mpirun has started.
#include "runtime/run/start.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/base/log.h"
#include "runtime/control/auth.h"
#include "runtime/control/controller.h"
#include "runtime/control/supervise.h"
#include "runtime/process/hostfile.h"
#include "runtime/process/launch.h"
#include "runtime/process/local_ranks.h"
#include "runtime/process/process_start.h"
#include "runtime/process/spawn.h"
#include "runtime/process/stale_segments.h"
#include "runtime/run/drive.h"
#include "runtime/run/resume.h"
#include "runtime/run/run.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {

int run_job(const RunArguments& arguments) {
  if (!arguments.hostfile.empty() && !std::filesystem::exists(arguments.hostfile))
    throw Error(Code::kMissingFile, "there is no " + arguments.hostfile)
        .at("--hostfile")
        .legal("a file with a host a line: \"NAME slots=RANKS\"");
  Run run(arguments);
  const std::string hostfile = arguments.hostfile.empty() ? process::default_hostfile() : arguments.hostfile;
  if (!hostfile.empty()) process::require_slots(hostfile, run.job().supernode.devices);
  process::require_program(process::LaunchSpec().mpirun);
  const Hosts hosts{hostfile, arguments.mpirun_args};
  if (hosts.by_allocation()) process::require_tasks(*hosts.allocation, run.job().supernode.devices);
  run.prepare(hosts.only_this_host() ? run.job().supernode.devices : 0);
  return run.execute([&](tasks::Driver& driver) { return drive(run.job(), arguments.job, driver, hosts); });
}

int run_controller(const RunArguments& arguments, int world) {
  init_log("controller");
  Run run(arguments);
  if (const int devices = run.job().supernode.devices; world != devices)
    throw Error(
        world < devices ? Code::kTooFewRanks : Code::kMpi,
        fmt::format("{}the job asks for {} devices, mpirun started {} {}",
                    world < devices ? "" : "too many ranks: ", devices, world, world == 1 ? "rank" : "ranks"))
        .at(arguments.job)
        .legal(fmt::format("-np {}", devices))
        .fix(fmt::format("mpirun --oversubscribe -np {} hyperrun {}", devices, arguments.job));
  control::ControllerOptions options = controller_options(run.job(), flags().secret);
  options.loopback = false;
  control::Controller controller(options);
  controller.launcher_started(process::parent_of(getppid()));  // our parent is rank 0, its parent is mpirun
  // The run is prepared before the devices learn the address. An error here ends rank 0 at once, and mpirun
  // then ends the other ranks.
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  run.prepare(local != nullptr ? std::atoi(local) : 0);
  process::tell_address(controller.address());
  return run.execute([&](tasks::Driver& driver) {
    control::Outcome outcome = controller.run(driver);
    // mpirun removes its shared memory unless it was killed, so we remove it after a failure.
    if (!outcome.ok())
      for (const tasks::DeviceInfo& device : outcome.devices) process::remove_segments(device.mpi_job);
    return outcome;
  });
}

}  // namespace hyperrun
