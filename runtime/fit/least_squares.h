// Unknown numbers of a model from measurements.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace hyperrun {

// What is believed of a number before anything is measured: about `expected`, give or take `deviation`.
struct Unknown {
  std::string name;
  double expected = 0, deviation = 1;
  double least = 0, most = 0;  // outside of them it makes no sense
};

struct LeastSquaresOptions {
  double scale = 0.04;  // residuals beyond it weigh by their size, not its square
  int rounds = 30;      // at most
};

struct Fitted {
  std::vector<double> values;  // by unknown
  double cost = 0;             // what was minimised
  int evaluations = 0;         // of the model
};

// Of unknowns and residuals r (0: as measured), minimises
//   sum of 2 s^2 (sqrt(1 + (r / s)^2) - 1)  +  s^2 x sum of ((value - expected) / deviation)^2,    s = scale,
// a most probable value where residuals are of about that scale and few are far off. By the method of
// Levenberg and Marquardt with derivatives by differences, each round's residuals weighed by the soft-L1 loss
// of the last; `residuals` gives as many each time and is called some (unknowns + 1) x rounds times.
Fitted least_squares(std::span<const Unknown> unknowns,
                     const std::function<std::vector<double>(std::span<const double>)>& residuals,
                     const LeastSquaresOptions& options = {});

}  // namespace hyperrun
