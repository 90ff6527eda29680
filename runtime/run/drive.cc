#include "runtime/run/drive.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "runtime/base/device_block.h"
#include "runtime/control/auth.h"
#include "runtime/control/supervise.h"
#include "runtime/process/descriptors.h"
#include "runtime/process/launch.h"
#include "runtime/process/process_start.h"
#include "runtime/rank/fault.h"
#include "runtime/report/version.h"

namespace hyperrun {

int ranks_of_this_host(int devices) {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, devices);
}

int ranks_for(int devices, const Hosts& hosts) {
  if (hosts.ranks > 0) return std::min(hosts.ranks, devices);
  if (hosts.only_this_host()) return ranks_of_this_host(devices);
  if (!hosts.file.empty()) return std::min(devices, process::slots_of(hosts.file).slots.value_or(devices));
  if (hosts.by_allocation() && hosts.allocation->tasks > 0)
    return static_cast<int>(std::min<std::int64_t>(devices, hosts.allocation->tasks));
  return devices;
}

namespace {

// Ranks that host several devices are spread over all hosts where these have slots to spare: mpirun would
// fill the first hosts and leave the others idle. 0: mpirun's own order is right.
int ranks_of_a_host(int devices, int ranks, const Hosts& hosts) {
  std::int64_t count = 0, slots = 0;
  if (!hosts.file.empty()) {
    const process::HostSlots file = process::slots_of(hosts.file);
    count = file.hosts, slots = file.slots.value_or(devices);
  } else if (hosts.by_allocation()) {
    count = hosts.allocation->node_count, slots = hosts.allocation->tasks;
  }
  if (count < 2 || ranks >= devices || ranks >= slots) return 0;
  return static_cast<int>((ranks + count - 1) / count);
}

}  // namespace

int require_ranks(int devices, const Hosts& hosts) {
  if (hosts.ranks > devices)
    throw Error(Code::kUsage, fmt::format("{} ranks for {} devices", hosts.ranks, devices))
        .at("--ranks")
        .legal(fmt::format("1 to {}: a rank hosts at least one device", devices));
  const int ranks = ranks_for(devices, hosts);
  if (!hosts.file.empty()) process::require_slots(hosts.file, ranks);
  if (hosts.by_allocation()) process::require_tasks(*hosts.allocation, ranks);
  process::require_descriptors(ranks);
  return ranks;
}

control::ControllerOptions controller_options(const Job& job, int ranks, const std::string& secret) {
  control::ControllerOptions options;
  options.devices = job.supernode.devices;
  options.ranks = ranks;
  options.secret = secret;
  options.version = std::string(version());
  options.heartbeat_seconds = job.run.heartbeat_seconds;
  options.handle_signals = true;
  return options;
}

namespace {

// The path of this program for its ranks. A file that was replaced or removed while a long run goes on can
// still be started here by way of this process.
std::string own_program() {
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe");
  return std::filesystem::exists(path) ? path.string() : fmt::format("/proc/{}/exe", getpid());
}

}  // namespace

control::Outcome drive(const Job& job, const std::string& name, tasks::Driver& driver, const Hosts& hosts,
                       const std::optional<FaultSpec>& fault) {
  process::LaunchSpec spec;
  process::require_program(spec.mpirun);
  spec.secret = control::make_secret();
  control::ControllerOptions options =
      controller_options(job, ranks_for(job.supernode.devices, hosts), spec.secret);
  options.loopback = hosts.only_this_host();
  control::Controller controller(options);
  spec.ranks = options.ranks;
  spec.program = {own_program(), "run", name};
  spec.controller = controller.address();
  const process::HostfileForMpirun hostfile(hosts.file);
  spec.hostfile = hostfile.path();
  spec.ranks_of_a_host = ranks_of_a_host(job.supernode.devices, options.ranks, hosts);
  spec.mpirun_args = hosts.mpirun_args;
  if (fault) spec.fault = to_text(*fault, process_of(fault->device, options.ranks, job.supernode.devices));
  spec.root = geteuid() == 0;
  return control::supervise(controller, driver, process::launch_command(spec));
}

}  // namespace hyperrun
