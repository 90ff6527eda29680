// A child process in a process group of its own, whose output is passed on unchanged. It does not outlive the
// thread that has made it: SIGTERM ends it, should that thread end by surprise.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::control {

struct ExitStatus {
  int code = 0;    // as a shell tells it: 128 + signal for a signal
  int signal = 0;  // or 0

  std::string describe() const;  // "exit code 3", "killed by signal 9 (Killed)"
};

class ChildProcess {
 public:
  using OnExit = std::function<void(const ExitStatus&, const std::string& stderr_tail)>;

  // Starts argv[0], found by PATH. Standard input is empty. on_exit is called on a thread of the
  // ChildProcess. Throws kMpi when argv[0] cannot be run.
  ChildProcess(const std::vector<std::string>& argv,
               const std::vector<std::pair<std::string, std::string>>& environment, OnExit on_exit = {});
  // Kills what still runs, never waits longer than a second.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const;
  void kill(int signal);        // the child alone
  void kill_group(int signal);  // with its descendants that stayed in its group
  std::optional<ExitStatus> wait_for(std::chrono::milliseconds time);  // empty: still running
  std::string stderr_tail() const;                                     // the last 4 KiB

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::control
