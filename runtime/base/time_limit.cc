#include "runtime/base/time_limit.h"

#include <algorithm>
#include <utility>

namespace hyperrun {
namespace {

thread_local TimeLimit::Clock::time_point end_of_thread = TimeLimit::Clock::time_point::max();

}  // namespace

TimeLimit::TimeLimit(Clock::time_point end)
    : before_(std::exchange(end_of_thread, std::min(end, end_of_thread))) {}
TimeLimit::~TimeLimit() { end_of_thread = before_; }
TimeLimit::Clock::time_point TimeLimit::of_this_thread() { return end_of_thread; }

void check_time() {
  if (end_of_thread != TimeLimit::Clock::time_point::max() && TimeLimit::Clock::now() > end_of_thread)
    throw OutOfTime();
}

}  // namespace hyperrun
