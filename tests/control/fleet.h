// Devices as processes, which are started, waited for with a limit, and never left behind.
#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/controller.h"
#include "runtime/process/pidfd.h"
#include "runtime/process/process_start.h"

namespace hyperrun::control {

// Factor on bounds of time, which are given for a build without sanitizers.
inline constexpr double kSlowdown = CONTROL_TEST_SLOWDOWN;

inline ControllerOptions test_options(std::int32_t devices) {
  ControllerOptions options;
  options.devices = devices;
  options.secret = "0123456789abcdef";
  options.version = "test";
  options.join_seconds = 15 * kSlowdown;
  options.heartbeat_seconds = 0.8;
  return options;
}

class Fleet {
 public:
  Fleet() = default;
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet() {
    for (const auto& [rank, pid] : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  void start(std::int32_t rank, std::int32_t world, const std::string& behaviour,
             const std::string& controller, const std::string& machine = "") {
    pids_[rank] = process::start_process(
        {CONTROL_ACTOR, "device", std::to_string(rank), std::to_string(world), behaviour, machine},
        {{"HYPERRUN_CONTROLLER", controller}, {"HYPERRUN_SECRET", test_options(1).secret}}, {});
  }

  int pid(std::int32_t rank) const { return pids_.at(rank); }

  // The exit code, or minus the signal; nullopt: it still runs after `seconds`.
  std::optional<int> wait(std::int32_t rank, double seconds) {
    const int pid = pids_.at(rank);
    const int fd = pidfd_open(pid, 0);
    pollfd p{fd, POLLIN, 0};
    poll(&p, 1, static_cast<int>(seconds * 1000));
    close(fd);
    int raw = 0;
    if (waitpid(pid, &raw, WNOHANG) != pid) return std::nullopt;
    pids_.erase(rank);
    return WIFSIGNALED(raw) ? -WTERMSIG(raw) : WEXITSTATUS(raw);
  }

 private:
  std::map<std::int32_t, int> pids_;
};

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace hyperrun::control
