// A command as a child process, with its output, its end and its duration.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hyperrun::testing {

using Command = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;
using Seconds = std::chrono::duration<double>;

// Sanitizers slow everything down; bounds on time are given for a build without.
inline constexpr double kSlowdown = LAUNCHER_TEST_SLOWDOWN;

struct Finished {
  Command command;
  int status = -1;  // 128 + signal when a signal ended it
  bool timed_out = false;
  std::string out, err;
  Seconds time{};
};
std::ostream& operator<<(std::ostream& stream, const Finished& finished);  // all of it, for messages

// A process that leads a process group of its own. Its output goes to files, so that it never blocks and is
// no terminal.
class Process {
 public:
  Process(Command command, const std::filesystem::path& directory, const Environment& environment);
  ~Process();  // kills the group when it has not ended
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;        // signals the process alone
  void signal_group(int number) const;  // signals its group, as a terminal does

  // Its output so far.
  std::string out() const;
  std::string err() const;

  // Waits for the end; after `limit` the group is killed and `timed_out` is set.
  Finished wait(Seconds limit);

 private:
  bool ended_within(Seconds limit);

  Command command_;
  std::chrono::steady_clock::time_point start_;
  int out_ = -1, err_ = -1;
  pid_t pid_ = -1;
  int raw_status_ = 0;
  bool ended_ = false;
};

// True if `condition` became true within `limit`; it is asked every few milliseconds.
template <class Condition>
bool eventually(Condition condition, Seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit * kSlowdown;
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace hyperrun::testing
