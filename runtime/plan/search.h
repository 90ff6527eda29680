// The search for the best strategy has three rounds, each with fewer strategies and better numbers:
//
// 1. Every strategy gets lower bounds of its step time and memory (bounding.h). What cannot fit is dropped.
//
// 2. A strategy whose bound is below the best forecasts gets a second bound, which knows axis orders
// (order_bounds.h). If this is below them as well, it gets a forecast (closed_form.h). The best are forecast
// in every axis order (candidates.h).
//
// 3. Leaders are compiled, placed and simulated, in the order of calibrated forecasts
// (forecast_calibration.h, simulated_candidate.h).
//
// No dropped strategy is faster than its bound. So the best simulated step over the least bound of all others
// certifies the result: Search::gap(). This is a best-first branch and bound that ends early (Land and Doig
// 1960).
#pragma once

#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/candidates.h"
#include "runtime/plan/simulated_candidate.h"

namespace hyperrun {

// A simulation made to answer a question about `requested`.
struct SimulatedAlternative {
  Strategy requested;
  SimulatedCandidate leader;
};

struct Search : Survey {
  std::vector<SimulatedCandidate> leaders;   // the fastest first, refused ones last
  std::vector<SimulatedAlternative> others;  // other simulations: choice_ablation.h
  double least_bound = 0;                    // least bound of all that may fit and were not simulated, ns
  bool is_whole = true;                      // false: the search was interrupted and has no least bound

  bool found() const { return !leaders.empty() && leaders.front().simulated > 0; }
  // Certified gap: no strategy of the space is faster than the best by more than this share. Infinity if the
  // bounds prove nothing.
  double gap() const;
  // False if a simulated step was shorter than its bound: then bounds prove nothing.
  bool bounds_hold = true;

  // Adds a simulated strategy of the space that is faster than all leaders, as the first. It had been
  // dropped, so its bound is no less than the least.
  void adopt(SimulatedCandidate leader);
};

// `base`: model, machine, batch and training. Its own strategy is ignored.
Search search(const Job& base, const SearchOptions& options);

}  // namespace hyperrun
