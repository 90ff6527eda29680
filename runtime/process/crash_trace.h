// The trace that Open MPI 4.1's mpirun prints when it crashes over a signal that it gets while it is
// aborting. We have sent that signal because the run has failed for another reason, so the trace tells a user
// nothing.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun::process {

// A filter of an mpirun's standard error, by lines.
class CrashTrace {
 public:
  explicit CrashTrace(int pid) : mark_(":" + std::to_string(pid) + "] ") {}

  // Returns the whole lines so far that are not of the trace of the process itself; a rank's trace is kept.
  std::string without(std::string_view bytes);
  std::string rest();  // the last line, if it has no end

 private:
  bool ours(std::string_view line);

  std::string mark_;  // "[HOST:PID] " begins each line of the trace
  std::string line_;
  bool inside_ = false;
};

}  // namespace hyperrun::process
