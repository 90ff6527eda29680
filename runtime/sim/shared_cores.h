// Processor cores shared by several computations (processor sharing). All go on at the same rate, which is
// below one if there are more computations than cores. Each ends when it has had all of its core time.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/sim/event_queue.h"

namespace hyperrun {

template <class What>
class SharedCores {
 public:
  explicit SharedCores(double cores) : cores_(cores) {}

  // Begins `alike` equal computations at `now`, each of which needs a core for `lasts`.
  void begin(std::int64_t now, Nanos lasts, int alike, What what) {
    advance(now);
    ends_.add(std::llround(had_) + lasts.value, {what, alike});
    computing_ += alike;
  }

  // Time of the next end, if nothing else begins.
  std::optional<std::int64_t> next() const {
    if (ends_.empty()) return std::nullopt;
    const double left = static_cast<double>(ends_.first().at) - had_;
    return now_ + std::llround(std::ceil(std::max(0.0, left) / rate()));
  }

  // Computations that have ended at `now`, in the order of their ends. `now` is not after next().
  std::vector<What> ended(std::int64_t now) {
    advance(now);
    std::vector<What> list;
    while (!ends_.empty() && static_cast<double>(ends_.first().at) <= had_ + kRounding) {
      const auto [at, number, one] = ends_.take();
      list.push_back(one.first);
      computing_ -= one.second;
    }
    return list;
  }

 private:
  static constexpr double kRounding = 1e-3;  // ns

  double rate() const { return computing_ > cores_ ? cores_ / computing_ : 1; }

  void advance(std::int64_t now) {
    had_ += static_cast<double>(now - now_) * rate();
    now_ = now;
  }

  double cores_;
  std::int64_t now_ = 0;
  double had_ = 0;        // core time, in ns, of a computation that has run since the beginning
  double computing_ = 0;  // number of computations under way
  EventQueue<std::pair<What, int>> ends_;  // by the value of had_ at which each ends
};

}  // namespace hyperrun
