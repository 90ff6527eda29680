// Helpers of the kernels' tests: float inputs, double references, finite differences, and a fixture that runs
// a test once on every vector target of the processor.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace hyperrun::testing {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Values in [-1, 1), the same each run.
Floats values(std::int64_t n, std::uint32_t seed);

Doubles to_double(const Floats& v);

// Frequencies of rotary positions without scaling.
Doubles frequencies(std::int64_t width, double theta);

// The relative distance |a - b| / |b| in the 2-norm; |a| if b is zero.
double relative_error(const Floats& a, const Doubles& b);
double relative_error(const Doubles& a, const Doubles& b);

// The gradient of f at x by central differences.
Doubles numeric_gradient(const std::function<double(const Doubles&)>& f, Doubles x);

double dot(const Doubles& a, const Doubles& b);

// Tolerance, relative to the norm, of a float32 kernel with sums of a few hundred terms.
inline constexpr double kRoundOff = 1e-6;
// Tolerance of a double reference against its own central differences with step 1e-5: the error is step^2
// plus 1e-16 / step.
inline constexpr double kDifference = 1e-7;

// Every test of this fixture runs on each available target of "AVX3", "AVX2" and the baseline.
class OnEveryTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override;
  void TearDown() override;
};

std::vector<std::int64_t> available_targets();
std::string target_name(const ::testing::TestParamInfo<std::int64_t>& info);

}  // namespace hyperrun::testing

#define HYPERRUN_ON_EVERY_TARGET(Suite) \
  INSTANTIATE_TEST_SUITE_P(Target, Suite, ::testing::ValuesIn(available_targets()), target_name)
