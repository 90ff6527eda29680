// Which forecasts a search still wants, by what others promise.
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

// The best forecasts of each space: as many as there will be leaders. What forecasts say of one space is
// decided among fewer in another, as some promise more than they keep.
class Promises {
 public:
  // The first space has all that the others have.
  Promises(std::span<const Space* const> spaces, std::size_t leaders);

  // Of a strategy that fits: its step, ns. By one thread at a time.
  void add(const Strategy& strategy, double time);

  // ns: where a strategy's bound is above it, no forecast of it is wanted. In any thread; it falls.
  double enough(const Strategy& strategy) const;

 private:
  struct Best {
    const Space* space;
    std::priority_queue<double> times = {};
    std::atomic<double> enough;
  };

  std::size_t leaders_;
  std::deque<Best> best_;
};

}  // namespace hyperrun
