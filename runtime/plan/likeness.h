// What simulations teach of forecasts. A closed form errs alike for strategies that are alike: where it
// leaves out how transfers queue, say, it does so for all that have them. Once some were simulated, the
// forecasts of others are corrected by how far those of their like were off.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "runtime/plan/strategy.h"

namespace hyperrun {

// Strategies of a family differ in the order of their axes, in their stages, and in how many layers recompute
// more, if any do.
using Family = std::tuple<std::array<std::int32_t, kPlanAxes>, PlanExperts, std::int32_t, std::int32_t,
                          PlanSchedule, PlanRecompute, bool, PlanMemory>;
Family family_of(const Strategy& strategy);

class Corrections {
 public:
  // Both in one unit, more than 0.
  void learn(const Strategy& strategy, double forecast, double simulated);

  // What a forecast is to be multiplied by: the geometric mean of simulated / forecast over those that are
  // most like it, which are its family with the same outermost axis; else those of the same outermost axis,
  // schedule, recomputation and memory policy; else of the same but for the axis; else of the same memory
  // policy. Each step away takes the root of it: of what little is known there is the more to hope. 1 where
  // nothing is known.
  double factor(const Strategy& strategy) const;

  // Of all factors, at most.
  double least() const { return least_; }

 private:
  static constexpr int kLevels = 4;
  using Kind = std::tuple<int, PlanAxis, Family>;  // by level
  struct Mean {
    double logs = 0;
    int count = 0;
  };
  static Kind kind_of(const Strategy& strategy, int level);

  std::map<Kind, Mean> means_;
  double least_ = 1;
};

}  // namespace hyperrun
