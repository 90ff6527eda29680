// Fits unknown numbers of a model to measurements.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace hyperrun {

// An unknown number with its prior: about `expected`, give or take `deviation`.
struct Unknown {
  std::string name;
  double expected = 0, deviation = 1;
  double least = 0, most = 0;  // the range of sensible values
};

struct LeastSquaresOptions {
  double scale = 0.04;  // larger residuals weigh by their size, not by its square
  int rounds = 30;      // most rounds
};

struct Fitted {
  std::vector<double> values;  // one for each unknown
  double cost = 0;             // the minimum found
  int evaluations = 0;         // evaluations of the model
};

// Minimises, over the unknowns, with residuals r (0: the model gives the measured value) and s = scale,
//   sum of 2 s^2 (sqrt(1 + (r / s)^2) - 1)  +  s^2 x sum of ((value - expected) / deviation)^2.
// The result is the most probable value if residuals are of about that scale and few are far off. The method
// is that of Levenberg and Marquardt with derivatives by differences; the soft-L1 loss of each round weighs
// the residuals of the next. `residuals` must always return equally many; it is called about (unknowns + 1) x
// rounds times.
Fitted least_squares(std::span<const Unknown> unknowns,
                     const std::function<std::vector<double>(std::span<const double>)>& residuals,
                     const LeastSquaresOptions& options = {});

}  // namespace hyperrun
