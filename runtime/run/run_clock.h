// The clock that a run's faults and its goodput go by, in seconds since its first step began. On the native
// clock these are the machine's own. On the paced clock they are those of the modelled machine, and what has
// only to be waited for takes no time.
#pragma once

#include "runtime/base/units.h"

namespace hyperrun {

class RunClock {
 public:
  explicit RunClock(bool paced, double dilation = 1) : paced_(paced), dilation_(dilation) {}

  // The clock stands at 0 when it begins. Further calls do nothing. Times are Unix times.
  void begin(Nanos at);
  bool begun() const { return begun_; }
  // The factor by which the paced clock is slower than the machine.
  void stretch(double dilation) { dilation_ = dilation; }

  double at(Nanos time) const;
  Nanos time_of(double seconds) const;
  // Whether what has only to be waited for takes no time.
  bool skips() const { return paced_; }
  // Waits, or has the clock stand at `seconds`. Returns at once if that has passed, and soon after a signal
  // (process::SignalWatch).
  void wait_until(double seconds);

 private:
  bool paced_;
  double dilation_;
  bool begun_ = false;
  Nanos origin_{};
  double skipped_ = 0;  // seconds that were not waited for
};

}  // namespace hyperrun
