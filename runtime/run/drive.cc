#include "runtime/run/drive.h"

#include <unistd.h>

#include <filesystem>

#include "runtime/control/auth.h"
#include "runtime/control/supervise.h"
#include "runtime/process/launch.h"
#include "runtime/process/process_start.h"
#include "runtime/report/version.h"

namespace hyperrun {

control::ControllerOptions controller_options(const Job& job, const std::string& secret) {
  control::ControllerOptions options;
  options.devices = job.supernode.devices;
  options.secret = secret;
  options.version = std::string(version());
  options.heartbeat_seconds = job.run.heartbeat_seconds;
  options.handle_signals = true;
  return options;
}

control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver, const Hosts& hosts) {
  process::LaunchSpec spec;
  process::require_program(spec.mpirun);
  spec.secret = control::make_secret();
  control::ControllerOptions options = controller_options(job, spec.secret);
  options.loopback = hosts.only_this_host();
  control::Controller controller(options);
  spec.devices = options.devices;
  spec.program = {std::filesystem::read_symlink("/proc/self/exe"), "run", name};
  spec.controller = controller.address();
  spec.hostfile = hosts.file;
  spec.mpirun_args = hosts.mpirun_args;
  spec.root = geteuid() == 0;
  return control::supervise(controller, driver, process::launch_command(spec));
}

}  // namespace hyperrun
