// A child process in a process group of its own, whose output is passed on, but for mpirun's own messages
// (mpirun_talk.h). It does not outlive the thread that started it: SIGTERM ends it if that thread ends
// unexpectedly.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hyperrun::process {

struct ExitStatus {
  int code = 0;    // as a shell reports it: 128 + signal for a signal
  int signal = 0;  // the signal that ended it, or 0

  std::string describe() const;  // "exit code 3", "killed by signal 9 (Killed)"
};

class ChildProcess {
 public:
  // `said` is stderr_tail().
  using OnExit = std::function<void(const ExitStatus&, const std::string& said)>;

  // Starts argv[0], found by PATH, with an empty standard input. on_exit is called on a thread of the
  // ChildProcess. Throws kMpi if argv[0] cannot be run.
  ChildProcess(const std::vector<std::string>& argv,
               const std::vector<std::pair<std::string, std::string>>& environment, OnExit on_exit = {});
  // Kills the process if it still runs; never waits longer than a second.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  int pid() const;
  void kill(int signal);        // signals the child alone
  void kill_group(int signal);  // signals the child and its descendants in its group
  std::optional<ExitStatus> wait_for(std::chrono::milliseconds time);  // nullopt: it is still running
  // The last 4 KiB of its standard error, and mpirun's own messages after that.
  std::string stderr_tail() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperrun::process
