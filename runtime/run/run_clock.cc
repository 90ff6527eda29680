#include "runtime/run/run_clock.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "runtime/process/signal_watch.h"
#include "runtime/run/recorder.h"

namespace hyperrun {

void RunClock::begin(Nanos at) {
  if (begun_) return;
  begun_ = true;
  origin_ = at;
}

double RunClock::at(Nanos time) const {
  return static_cast<double>((time - origin_).value) / 1e9 / dilation_ + skipped_;
}

Nanos RunClock::time_of(double seconds) const {
  return origin_ + Nanos(std::llround((seconds - skipped_) * dilation_ * 1e9));
}

void RunClock::wait_until(double seconds) {
  const double wait = seconds - at(unix_time());
  if (wait <= 0) return;
  if (paced_) {
    skipped_ += wait;
    return;
  }
  while (at(unix_time()) < seconds && process::SignalWatch::caught() == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace hyperrun
