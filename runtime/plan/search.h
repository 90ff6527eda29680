// The search for the best strategy, in three rounds, each with fewer and better numbers:
//
// 1. every strategy gets a bound of its step and of its memory (bounding.h): what cannot fit is out;
//
// 2. strategies whose bound is below the best forecasts of those that fit get a second bound, which knows of
//    orders (order_bounds.h), and where that is below them a forecast (closed_form.h); the best ones in every
//    order of their axes (candidates.h has both);
//
// 3. in the order of their forecasts, corrected by what was simulated of their like (likeness.h), the leaders
//    are compiled, placed and simulated event by event (leader.h).
//
// No strategy that was left out is faster than its bound, so the best simulated step, over the least bound of
// all that were not simulated, says how far the best of the whole space can be from it: Search::gap. A
// best-first branch and bound that ends early (Land and Doig 1960).
#pragma once

#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/candidates.h"
#include "runtime/plan/leader.h"

namespace hyperrun {

// What was compiled and simulated for a question about `asked`.
struct Answered {
  Strategy asked;
  Leader leader;
};

struct Search : Survey {
  std::vector<Leader> leaders;   // the fastest first, the refused last
  std::vector<Answered> others;  // that were compiled and simulated besides: see why.h
  double least_bound = 0;        // ns, of all that may fit and were not simulated
  bool is_whole = true;          // else it was interrupted: there is no least bound

  bool found() const { return !leaders.empty() && leaders.front().simulated > 0; }
  // No strategy of the space is faster than the best by more than this share; 0: it is the best; infinite
  // where bounds prove nothing.
  double gap() const;
  // A simulated step was shorter than its bound, so bounds prove nothing here.
  bool bounds_hold = true;

  // One of the space that others have found and simulated, faster than all leaders: the first then. It was
  // left out, so its bound is no less than the least.
  void adopt(Leader leader);
};

// `base`: model, machine, batch and training; its own strategy is of no meaning.
Search search(const Job& base, const SearchOptions& options);

}  // namespace hyperrun
