// Starts a run with mpirun as a child, or becomes the controller of ranks that a foreign mpirun has started.
#include "runtime/run/start.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

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
#include "runtime/rank/mpi_start.h"
#include "runtime/rank/rank_process.h"
#include "runtime/rank/room.h"
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
  const int devices = run.job().supernode.devices;
  const std::string hostfile = arguments.hostfile.empty() ? process::default_hostfile() : arguments.hostfile;
  Hosts hosts{.file = hostfile, .mpirun_args = arguments.mpirun_args};
  hosts.ranks = arguments.ranks;
  const int ranks = require_ranks(devices, hosts);
  process::require_program(process::LaunchSpec().mpirun);
  run.prepare(hosts.only_this_host() ? OnThisHost{devices, ranks} : OnThisHost{});
  Survivors survivors(hosts, run.directory() / "hosts.left");
  const auto start = [&](const Job& job, tasks::Driver& driver, const std::optional<FaultSpec>& fault) {
    return drive(job, arguments.job, driver, survivors.hosts(), fault);
  };
  return run.execute({start, &survivors}, Restarts(arguments.restarts.value_or(run.job().run.restarts),
                                                   run.job().run.on_divergence == kSkip));
}

int run_as_rank(const RunArguments& arguments) {
  if (const int world = world_size_from_environment(); arguments.ranks > 0 && arguments.ranks != world)
    throw Error(Code::kUsage, fmt::format("mpirun has started {} {}", world, world == 1 ? "rank" : "ranks"))
        .at("--ranks")
        .legal(fmt::format("{}, or leave it out", world))
        .fix(fmt::format("mpirun -np {}", arguments.ranks));
  if (arguments.restarts.value_or(0) > 0)
    throw Error(Code::kUsage, "mpirun ends with its ranks, so nothing can start them again")
        .at("--restarts")
        .legal("0, or leave it out")
        .fix("start hyperrun itself: it starts mpirun");
  std::vector<std::string> controller{"", "controller", arguments.job};
  for (const auto& [option, value] :
       {std::pair{"--run-dir", arguments.directory}, {"--resume", arguments.resume}})
    if (!value.empty()) controller.insert(controller.end(), {option, value});
  if (arguments.quiet) controller.emplace_back("--quiet");
  return run_rank(controller);
}

int run_controller(const RunArguments& arguments, int world) {
  init_log("controller");
  Run run(arguments);
  const int devices = run.job().supernode.devices;
  if (world > devices)
    throw Error(Code::kMpi, fmt::format("too many ranks: the job asks for {} {}, mpirun started {} ranks",
                                        devices, devices == 1 ? "device" : "devices", world))
        .at(arguments.job)
        .legal(fmt::format("-np 1 to {}: a rank hosts one or several devices", devices))
        .fix(fmt::format("mpirun --oversubscribe -np {} hyperrun {}", devices, arguments.job));
  control::ControllerOptions options = controller_options(run.job(), world, flags().secret);
  options.loopback = false;
  control::Controller controller(options);
  controller.launcher_started(process::parent_of(getppid()));  // our parent is rank 0, its parent is mpirun
  // The run is prepared before the devices learn the address. An error here ends rank 0 at once, and mpirun
  // then ends the other ranks.
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const int ranks = local != nullptr ? std::atoi(local) : 0;
  // Hosts whose devices are not known host the fewest.
  run.prepare({ranks == world ? devices : ranks * (devices / world), ranks});
  process::tell_address(controller.address());
  const auto start = [&](const Job&, tasks::Driver& driver, const std::optional<FaultSpec>&) {
    control::Outcome outcome = controller.run(driver);
    // mpirun removes its shared memory unless it was killed, so we remove it after a failure.
    if (!outcome.ok())
      for (const tasks::DeviceInfo& device : outcome.devices) process::remove_segments(device.mpi_job);
    return outcome;
  };
  return run.execute({start}, Restarts(0));  // a foreign mpirun ends with its ranks
}

}  // namespace hyperrun
