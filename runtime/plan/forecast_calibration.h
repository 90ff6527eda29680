// Calibration of forecasts by simulation. The closed form has similar errors for similar strategies: it
// neglects, for example, how transfers queue. After some strategies are simulated, forecasts of the others
// are multiplied by the ratio found for the most similar ones.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>

#include "runtime/plan/strategy.h"

namespace hyperrun {

// Strategies of a family differ only in axis order, chunks, how layers are dealt to stages, and the number of
// extra recomputing layers.
using Family = std::tuple<std::array<std::int32_t, kPlanAxes>, PlanExperts, std::int32_t, std::int32_t,
                          PlanSchedule, PlanRecompute, bool, PlanMemory>;
Family family_of(const Strategy& strategy);

class ForecastCalibration {
 public:
  // Records one strategy. Both values are in the same unit and positive.
  void learn(const Strategy& strategy, double forecast, double simulated);

  // Factor for a forecast: the geometric mean of simulated / forecast over the most similar strategies known.
  // Levels of similarity: the family with the same outermost axis; the same outermost axis, schedule,
  // recomputation and memory policy; the same without the axis; the same memory policy. Each level further
  // away takes the square root once more, as it proves less. 1 if nothing is known.
  double factor(const Strategy& strategy) const;

  // No factor is below this.
  double least() const { return least_; }

 private:
  static constexpr int kLevels = 4;
  using Kind = std::tuple<int, PlanAxis, Family>;  // level, outermost axis, family
  struct Mean {
    double logs = 0;
    int count = 0;
  };
  static Kind kind_of(const Strategy& strategy, int level);

  std::map<Kind, Mean> means_;
  double least_ = 1;
};

}  // namespace hyperrun
