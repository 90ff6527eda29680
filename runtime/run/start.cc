// Starts a run: with mpirun as our child, or as the controller of ranks that a foreign mpirun has started.
#include "runtime/run/start.h"

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
  if (!arguments.hostfile.empty()) process::require_slots(arguments.hostfile, run.job().supernode.devices);
  process::require_program(process::LaunchSpec().mpirun);
  const Hosts hosts{arguments.hostfile, arguments.mpirun_args};
  run.prepare(hosts.one() ? run.job().supernode.devices : 0);
  return run.execute([&](tasks::Driver& driver) { return drive(run.job(), arguments.job, driver, hosts); });
}

int run_controller(const RunArguments& arguments, int world) {
  init_log("controller");
  Run run(arguments);
  if (const int devices = run.job().supernode.devices; world != devices)
    throw Error(world < devices ? Code::kTooFewRanks : Code::kMpi,
                std::string(world < devices ? "" : "too many ranks: ") + "the job asks for " +
                    std::to_string(devices) + " devices, mpirun started " + std::to_string(world) +
                    (world == 1 ? " rank" : " ranks"))
        .at(arguments.job)
        .legal("-np " + std::to_string(devices))
        .fix("mpirun --oversubscribe -np " + std::to_string(devices) + " hyperrun " + arguments.job);
  control::ControllerOptions options = controller_options(run.job(), flags().secret);
  options.loopback = false;
  control::Controller controller(options);
  controller.launcher_started(process::parent_of(getppid()));  // of rank 0, which is our parent
  // Before the devices learn where to join: what is refused here ends rank 0 at once, and thereby the others.
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  run.prepare(local != nullptr ? std::atoi(local) : 0);
  process::tell_address(controller.address());
  return run.execute([&](tasks::Driver& driver) {
    control::Outcome outcome = controller.run(driver);
    // mpirun cleans up behind itself unless it was killed; then that is left to us.
    if (!outcome.ok())
      for (const tasks::DeviceInfo& device : outcome.devices) process::remove_segments(device.mpi_job);
    return outcome;
  });
}

}  // namespace hyperrun
