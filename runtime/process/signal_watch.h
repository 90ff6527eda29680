// Signals that ask a run to end while no controller listens for them: between two starts of its devices.
#pragma once

#include <csignal>
#include <vector>

namespace hyperrun::process {

// While an object exists, the first SIGINT, SIGTERM or SIGHUP is remembered, and a second one ends the
// process. At most one object may exist at a time.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();  // restores the handlers before
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // The first signal that any object has seen; 0: none.
  static int caught();

 private:
  std::vector<struct sigaction> previous_;
};

}  // namespace hyperrun::process
