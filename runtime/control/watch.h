// Watches over the devices of a run: who is silent, whether anybody gets on, and, when something is
// wrong, what is its cause. Tells a verdict at most once: an error, or the signal that ended the run.
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
    Clock::duration heartbeat;  // a device silent for longer is hung
    Clock::duration stall;      // nobody got on for longer: zero is no limit
  };

  struct Verdict {
    std::function<void(const Error&)> failed;
    std::function<void(int signal)> interrupted;
    std::function<Work(std::int32_t rank)> work;  // asked when somebody is to be named
  };

  Watch(asio::io_context& io, Membership& members, Limits limits, Verdict verdict);

  void start();
  void stop();
  // Stalls count from now on: from when there is work to do until there is no more.
  void set_working(bool working);

  void note(Symptoms symptoms);
  void on_report(Member& member, std::int64_t invocation);
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
