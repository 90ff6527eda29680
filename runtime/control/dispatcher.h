// The window of invocations in flight: which are out, who has reported. No input or output.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "runtime/control/messages.h"

namespace hyperrun::control {

class Dispatcher {
 public:
  struct Completed {
    Invocation invocation;
    std::vector<InvocationDone> results;  // by rank
  };

  Dispatcher(std::int32_t devices, std::int32_t window);

  bool has_room() const { return static_cast<std::int32_t>(flights_.size()) < window_; }
  bool idle() const { return flights_.empty(); }

  void issue(Invocation invocation);

  // A device's report. Devices report in the order of issue: throws kControl for any other.
  void collect(std::int32_t rank, InvocationDone done);

  // The oldest invocation, once all devices have reported it.
  std::optional<Completed> take_completed();

 private:
  struct Flight {
    Completed completed;
    std::int32_t missing;
  };
  std::int32_t devices_, window_;
  std::deque<Flight> flights_;
  std::int64_t taken_ = 0;                 // flights_[0] is number taken_
  std::vector<std::int64_t> next_report_;  // by rank: the number it reports next
};

}  // namespace hyperrun::control
