// Last words of long work that is interrupted (ctrl-C).
#pragma once

#include <csignal>
#include <functional>
#include <thread>

namespace hyperrun {

// While it lives, SIGINT lets `last_words` run in a thread of its own, whatever the work is at, and ends the
// process with status 130. There is one at a time.
class Interruption {
 public:
  explicit Interruption(std::function<void()> last_words);
  ~Interruption();  // SIGINT does what it did before
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  struct sigaction before_ {};
  int read_ = -1;
  std::thread waiting_;
};

}  // namespace hyperrun
