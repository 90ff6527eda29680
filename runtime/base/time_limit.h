// A limit on the wall clock for work that may be given up, such as a job that is compiled only to see whether
// it would fit.
#pragma once

#include <chrono>
#include <exception>

namespace hyperrun {

// It is no Error: nothing is wrong with what was being done.
class OutOfTime : public std::exception {
 public:
  const char* what() const noexcept override { return "the time for this is over"; }
};

// Holds for the thread that makes it, and for the threads of its parallel_for, while it lives. A limit within
// another one can only be earlier.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TimeLimit(Clock::time_point end);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  static Clock::time_point of_this_thread();  // Clock::time_point::max(): none

 private:
  Clock::time_point before_;
};

// Throws OutOfTime beyond the limit of this thread. Long loops call it.
void check_time();

}  // namespace hyperrun
