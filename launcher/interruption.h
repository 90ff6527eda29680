// Prints partial results when long work is interrupted by ctrl-C:
//
//   const Interruption guard([&] { print(results_so_far); });
//   search();  // ctrl-C prints the results, then the process exits with status 130
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace hyperrun {

// While an object exists, SIGINT runs `last_words` in a separate thread, without waiting for the work. The
// process then exits with status 130. At most one object may exist at a time.
class Interruption {
 public:
  explicit Interruption(std::function<void()> last_words);
  ~Interruption();  // restores the previous SIGINT handler
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  struct sigaction previous_ {};
  int read_end_ = -1;  // of the pipe on which the handler wakes the thread
  std::thread thread_;
};

}  // namespace hyperrun
