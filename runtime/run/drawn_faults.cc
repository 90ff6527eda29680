#include "runtime/run/drawn_faults.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace hyperrun {

DrawnFaults::DrawnFaults(FaultModel model, std::int32_t devices, std::uint64_t seed)
    : model_(std::move(model)),
      history_(draw_faults(model_, devices + spares_of(model_, devices), seed)),
      healthy_(devices + spares_of(model_, devices)) {}

std::optional<Fault> DrawnFaults::start(std::int32_t devices) {
  in_use_ = devices;
  for (std::size_t f = next_; f < history_.size(); ++f)
    if (history_[f].place < devices) return history_[f];
  return std::nullopt;
}

std::optional<double> DrawnFaults::pass(double time) {
  std::optional<double> hit;
  for (;;) {
    const double fault =
        next_ < history_.size() ? history_[next_].time : std::numeric_limits<double>::infinity();
    if (std::min(fault, healthy_.next_repair()) > time) return hit;
    if (healthy_.next_repair() <= fault) {
      healthy_.take_back();
      continue;
    }
    const Fault& now = history_[next_++];
    healthy_.lose(model_, now, in_use_);
    if (now.place >= in_use_) continue;
    hit = now.time;
    in_use_ = 0;
  }
}

// Faults meanwhile may take others away, so it is found by letting them happen to a copy.
double DrawnFaults::time_until(std::int32_t devices) const {
  DrawnFaults ahead = *this;
  double time = 0;
  while (ahead.healthy() < devices) {
    time = ahead.healthy_.next_repair();
    if (time == std::numeric_limits<double>::infinity()) return time;
    ahead.pass(time);
  }
  return time;
}

}  // namespace hyperrun
