#include "runtime/control/supervise.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "runtime/process/child_process.h"
#include "runtime/process/signal_watch.h"
#include "runtime/process/stale_segments.h"

namespace hyperrun::control {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGoodEnd{10000};  // mpirun after all devices said goodbye
constexpr milliseconds kBadEnd{500};     // mpirun after the devices were aborted: it may never end
constexpr milliseconds kOwnEnd{3500};    // mpirun that has seen ranks fail
constexpr milliseconds kAskedEnd{2000};  // mpirun after it is asked to end
constexpr milliseconds kKilled{1000};
constexpr std::size_t kToldLines = 12;

// Returns the last lines of mpirun's output that say something. It frames its messages in rules of dashes and
// empty lines.
std::string essence(const std::string& said) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < said.size();) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    if (line.find_first_not_of(" -\t\r") != std::string::npos) lines.push_back(line);
    begin = end + 1;
  }
  std::string text;
  for (std::size_t i = lines.size() > kToldLines ? lines.size() - kToldLines : 0; i < lines.size(); ++i)
    text += "\n  | " + lines[i];
  return text;
}

// A part of what mpirun, srun or ssh say, and what can be done about it.
struct Remedy {
  const char* part;
  const char* fix;
};
constexpr Remedy kRemedies[] = {
    {"parse error in the hostfile", "correct that line of the host file: NAME slots=RANKS"},
    {"Could not resolve hostname", "correct the host's name, or add it to /etc/hosts or the name service"},
    {"Host key verification failed", "accept the host's key once: ssh HOST true"},
    {"Permission denied (", "let ssh log in there without a password: ssh-copy-id HOST"},
    {"Connection refused", "see that sshd runs on that host, and that ssh HOST true works"},
    {"Connection timed out", "see that the host runs and can be reached: ssh HOST true"},
    {"No route to host", "see that the host runs and can be reached: ssh HOST true"},
    {"orted: command not found", "install the same Open MPI there, in the PATH of a shell that ssh starts"},
    {"orted: No such file", "install the same Open MPI there, in the PATH of a shell that ssh starts"},
    {"srun: error",
     "srun refused to start mpirun's daemons: see that srun hostname works in this allocation"},
    {"unable to reliably start one or more daemons",
     "mpirun with this host file must work first: mpirun --hostfile FILE hostname"},
};

Error launcher_error(const std::string& name, const process::ExitStatus& status, const std::string& said) {
  if (said.find("not enough slots") != std::string::npos)
    return Error(Code::kTooFewRanks,
                 "the hosts offer fewer slots than the job has devices; " + name + " said:" + essence(said))
        .fix("add hosts or slots to the hostfile, or ask for fewer devices");
  Error error(Code::kMpi, name + " ended before the run did (" + status.describe() + ")" +
                              (said.empty() ? "" : "; it said:" + essence(said)));
  for (const Remedy& remedy : kRemedies)
    if (said.find(remedy.part) != std::string::npos) return error.fix(remedy.fix);
  return error;
}

// Has mpirun end its ranks: only it knows all of them and can remove what they have begun. If a rank has
// ended, mpirun is aborting already. A SIGTERM meanwhile would crash Open MPI 4.1, so it is sent only while
// no rank has started. Returns false if mpirun does not end.
bool end_ranks(process::ChildProcess& child, bool any_started) {
  if (any_started) return child.wait_for(kOwnEnd).has_value();
  if (child.wait_for(kBadEnd)) return true;
  child.kill(SIGTERM);
  return child.wait_for(kAskedEnd).has_value();
}

// Ends the launcher. If all devices have joined, they are told to end, and their remains are known by name.
void end_launcher(process::ChildProcess& child, const std::string& name, const Outcome& outcome) {
  const bool good = outcome.ok();
  if (!good && !outcome.all_joined && end_ranks(child, outcome.any_started)) return;
  const milliseconds own_end = outcome.launcher_stopped ? milliseconds(0) : good ? kGoodEnd : kBadEnd;
  if (const auto status = child.wait_for(own_end)) {
    if (good && status->code != 0)
      spdlog::warn("{} ended with {} after a good run", name, status->describe());
    return;
  }
  if (good && !outcome.launcher_stopped) spdlog::warn("{} did not end after a good run and is killed", name);
  // TERM would not do: with a stopped rank mpirun would hang over it for minutes.
  child.kill(SIGKILL);
  if (!child.wait_for(kKilled)) spdlog::warn("{} (pid {}) cannot be killed", name, child.pid());
}

void clean_up(const process::ChildProcess& child, const Outcome& outcome) {
  std::set<std::string> jobs;
  for (const tasks::DeviceInfo& device : outcome.devices) jobs.insert(device.mpi_job);
  for (const std::string& job : jobs) process::remove_segments(job);
  std::error_code none;
  const std::filesystem::path tmp = std::filesystem::temp_directory_path(none);
  if (!none) process::remove_session(child.pid(), tmp);
}

}  // namespace

Outcome supervise(Controller& controller, tasks::Driver& driver, const process::LaunchCommand& launcher) {
  const std::string& name = launcher.argv.at(0);
  try {
    process::ChildProcess child(launcher.argv, launcher.environment,
                                [&](const process::ExitStatus& status, const std::string& said) {
                                  controller.launcher_ended(launcher_error(name, status, said));
                                });
    controller.launcher_started(child.pid());
    Outcome outcome = controller.run(driver);
    const process::SignalWatch watch;
    end_launcher(child, name, outcome);
    clean_up(child, outcome);
    if (outcome.signal == 0) outcome.signal = process::SignalWatch::caught();
    return outcome;
  } catch (const Error& e) {
    driver.on_failed(e);
    return {.error = e};
  }
}

}  // namespace hyperrun::control
