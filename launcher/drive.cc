#include "launcher/drive.h"

#include <unistd.h>

#include <filesystem>

#include "runtime/control/auth.h"
#include "runtime/control/launch.h"
#include "runtime/control/process_start.h"
#include "runtime/control/supervise.h"
#include "runtime/report/version.h"

namespace hyperrun {

control::Outcome drive(const Session& session, control::Driver& driver) {
  control::ControllerOptions options;
  options.devices = session.job.supernode.devices;
  options.secret = control::make_secret();
  options.version = std::string(version());
  options.heartbeat_seconds = session.job.run.heartbeat_seconds;
  options.handle_signals = true;
  control::Controller controller(options);
  control::LaunchSpec spec;
  control::require_program(spec.mpirun);
  spec.devices = options.devices;
  spec.program = {std::filesystem::read_symlink("/proc/self/exe"), "run", session.job.name};
  spec.controller = controller.address();
  spec.secret = options.secret;
  spec.root = geteuid() == 0;
  return control::supervise(controller, driver, control::launch_command(spec));
}

}  // namespace hyperrun
