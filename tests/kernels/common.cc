#include "tests/kernels/common.h"

#include <hwy/targets.h>

#include <cmath>

#include "runtime/device/kernels/thread.h"

namespace hyperrun::testing {

Floats values(std::int64_t n, std::uint32_t seed) {
  Floats v(static_cast<std::size_t>(n));
  seed = seed * 2654435761U + 12345U;
  for (float& x : v) {
    seed = seed * 1664525U + 1013904223U;
    x = static_cast<float>(seed >> 8) * 0x1p-23F - 1.0F;
  }
  return v;
}

Doubles frequencies(std::int64_t width, double theta) {
  Doubles list;
  for (std::int64_t i = 0; i < width / 2; ++i)
    list.push_back(std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  return list;
}

Doubles to_double(const Floats& v) { return {v.begin(), v.end()}; }

double relative_error(const Doubles& a, const Doubles& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

double relative_error(const Floats& a, const Doubles& b) { return relative_error(to_double(a), b); }

Doubles numeric_gradient(const std::function<double(const Doubles&)>& f, Doubles x) {
  constexpr double kStep = 1e-5;
  Doubles gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + kStep;
    const double up = f(x);
    x[i] = at - kStep;
    const double down = f(x);
    x[i] = at;
    gradient[i] = (up - down) / (2 * kStep);
  }
  return gradient;
}

double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<std::int64_t> available_targets() {
  std::vector<std::int64_t> targets;
  for (const std::int64_t t : {HWY_AVX3, HWY_AVX2, HWY_NEON, HWY_SCALAR}) {
    if ((hwy::SupportedTargets() & t) != 0) targets.push_back(t);
  }
  return targets;
}

std::string target_name(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

void OnEveryTarget::SetUp() {
  hwy::SetSupportedTargetsForTest(GetParam());
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  ASSERT_STREQ(kernels::vector_target(), hwy::TargetName(GetParam()));
}

void OnEveryTarget::TearDown() {
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace hyperrun::testing
