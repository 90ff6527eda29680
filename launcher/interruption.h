// What long work does when it is interrupted (ctrl-C).
#pragma once

#include <csignal>
#include <functional>
#include <stop_token>
#include <thread>

namespace hyperrun {

// While it lives, SIGINT lets `last_words` run, whatever the work is at, and ends the process with status
// 130. It is made before other threads are, as they inherit who takes signals.
class Interruption {
 public:
  explicit Interruption(std::function<void()> last_words);
  ~Interruption();  // SIGINT kills as before
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  sigset_t before_{};
  std::jthread waiting_;
};

}  // namespace hyperrun
