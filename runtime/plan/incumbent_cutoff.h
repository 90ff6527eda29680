// The cut-off of a search: a strategy whose lower bound is above the best forecasts so far needs no forecast.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <queue>
#include <span>
#include <vector>

#include "runtime/plan/space.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Keeps the best forecasts of each space, as many as there will be leaders. Forecasts may be too low, so a
// restricted space is compared with its own forecasts only.
class IncumbentCutoff {
 public:
  // The first space contains the others.
  IncumbentCutoff(std::span<const Space* const> spaces, std::size_t leaders);

  // Records the forecast of a strategy that fits, ns. One thread at a time.
  void add(const Strategy& strategy, double time);

  // The lower bound above which a strategy needs no forecast, ns. It falls over time. Any thread.
  double cutoff(const Strategy& strategy) const;

 private:
  struct Best {
    const Space* space;
    std::priority_queue<double> times = {};
    std::atomic<double> cutoff;
  };

  std::size_t leaders_;
  std::deque<Best> best_;
};

}  // namespace hyperrun
