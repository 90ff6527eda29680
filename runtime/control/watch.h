// The watch over the devices of a run. It finds silent devices and a run that does not get on, and then the
// cause. It gives a verdict at most once: an error, or the signal that ended the run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <utility>  // before Asio: Boost 1.74 under C++20 needs it

#include "runtime/base/error.h"
#include "runtime/control/diagnosis.h"
#include "runtime/control/membership.h"

namespace hyperrun::control {

class Watch {
 public:
  struct Limits {
    Clock::duration heartbeat;  // limit of a device's silence
    Clock::duration stall;      // limit of a time without progress; zero: no limit
  };

  struct Verdict {
    std::function<void(const Error&)> failed;
    std::function<void(int signal)> interrupted;
    std::function<Work(std::int32_t device)> work;  // called when a device must be named
  };

  Watch(asio::io_context& io, Membership& members, Limits limits, Verdict verdict);

  void start();
  void stop();
  // Starts or stops the count of stalls: it runs while there is work to do.
  void set_working(bool working);

  void note(FailureReport report);
  void on_report(Member& member, std::int32_t device, std::int64_t invocation);
  void on_heartbeat(Member& member, pb::Heartbeat&& beat);
  bool suspects_device() const { return diagnosis_.any() && diagnosis_.root().rank >= 0; }

 private:
  void tick();
  void show_life(Clock::time_point now);
  void find_hung(Clock::time_point now);
  void find_stall(Clock::time_point now);
  std::vector<DeviceState> states() const;
  void ask_positions();
  void schedule_decision(Clock::duration time);
  void decide();

  Membership& members_;
  Limits limits_;
  Verdict verdict_;
  Diagnosis diagnosis_;
  asio::steady_timer tick_, decision_;
  Clock::duration period_;
  Clock::time_point last_tick_, last_alive_, progressed_, first_noted_;
  bool working_ = false, stopped_ = false;
};

}  // namespace hyperrun::control
