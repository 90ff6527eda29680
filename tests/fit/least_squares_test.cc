// Fits find the numbers again with which measurements were made up.
#include "runtime/fit/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hyperrun {
namespace {

const std::vector<double> kSizes{1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 1e5};

// The made-up model: latency + size / (ceiling x size / (size + half)).
double time_of(std::span<const double> v, double size) { return v[0] + (size + v[2]) / v[1]; }

const std::vector<Unknown> kUnknowns{
    {"latency", 10, 10, 0, 100}, {"rate", 50, 50, 1, 1000}, {"half", 50, 50, 0, 1000}};

auto residuals_of(const std::vector<double>& measured) {
  return [measured](std::span<const double> v) {
    std::vector<double> r;
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      r.push_back(std::log(time_of(v, kSizes[i]) / measured[i]));
    return r;
  };
}

TEST(LeastSquares, FindsWhatMadeTheMeasurements) {
  const std::vector<double> truth{3, 120, 200};
  std::vector<double> measured;
  for (const double size : kSizes) measured.push_back(time_of(truth, size));
  const Fitted f = least_squares(kUnknowns, residuals_of(measured));
  // Latency and half are one number at these sizes' times: their sum is what can be known.
  EXPECT_NEAR(f.values[1], 120, 1);
  EXPECT_NEAR(f.values[0] + f.values[2] / f.values[1], 3 + 200 / 120.0, 0.05);
}

TEST(LeastSquares, OneFarOffHardlyMovesIt) {
  const std::vector<double> truth{3, 120, 200};
  std::vector<double> measured;
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 0.01);
  for (const double size : kSizes) measured.push_back(time_of(truth, size) * std::exp(noise(random)));
  measured[7] *= 3;
  const Fitted f = least_squares(kUnknowns, residuals_of(measured));
  EXPECT_NEAR(f.values[1], 120, 6);
}

TEST(LeastSquares, StaysWithinBounds) {
  const std::vector<Unknown> unknowns{{"rate", 5, 2, 1, 6}};
  const auto residuals = [](std::span<const double> v) { return std::vector<double>{v[0] - 8, v[0] - 9}; };
  EXPECT_EQ(least_squares(unknowns, residuals).values[0], 6);
}

TEST(LeastSquares, WithoutMeasurementsItIsAsExpected) {
  const auto nothing = [](std::span<const double>) { return std::vector<double>{}; };
  const Fitted f = least_squares(kUnknowns, nothing);
  for (std::size_t i = 0; i < kUnknowns.size(); ++i) EXPECT_EQ(f.values[i], kUnknowns[i].expected);
}

// The residuals are 0 at different points; the minimum weighs them and the priors, in closed form.
TEST(LeastSquares, TheMinimumOfSquaresAndBeliefs) {
  const std::vector<Unknown> unknowns{{"x", 1, 2, -100, 100}};
  // Small residuals are squared: r = (x - 1.02), and the prior has the weight scale^2 / deviation^2.
  const auto residuals = [](std::span<const double> v) { return std::vector<double>{(v[0] - 1.02) / 100}; };
  const double weight = 0.04 * 0.04 / 4, measured = 1e-4;
  EXPECT_NEAR(least_squares(unknowns, residuals).values[0],
              (weight * 1 + measured * 1.02) / (weight + measured), 1e-5);
}

}  // namespace
}  // namespace hyperrun
