// The end of a run in good order, when all work is done and the devices end. They need their launcher for
// that: mpirun takes part in MPI_Finalize.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "runtime/control/clock.h"

namespace hyperrun::control {

class Drain {
 public:
  struct Verdict {
    std::function<void()> too_long;
    std::function<void(int pid)> launcher_stopped;  // it has been stopped for so long that nobody is at it
  };

  // `stopped_launcher` returns the pid of a launcher that is stopped, or 0.
  Drain(boost::asio::io_context& io, std::function<int()> stopped_launcher)
      : stopped_launcher_(std::move(stopped_launcher)), tick_(io) {}

  void begin(Clock::duration limit, Verdict verdict);
  void end() { tick_.cancel(); }

 private:
  void tick();

  std::function<int()> stopped_launcher_;
  Verdict verdict_;
  Clock::time_point end_, running_;  // running_: when the launcher was last seen running
  boost::asio::steady_timer tick_;
};

}  // namespace hyperrun::control
