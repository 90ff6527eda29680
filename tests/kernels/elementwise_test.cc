#include "runtime/device/kernels/elementwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/dtype.h"
#include "runtime/device/kernels/thread.h"
#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class Elementwise : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(Elementwise);

// Sizes around one, two and four vectors.
constexpr std::int64_t kSizes[] = {0, 1, 3, 8, 15, 16, 17, 33, 63, 64, 65, 130, 1000};

TEST_P(Elementwise, AddAccumulateScaleFillCopy) {
  for (const std::int64_t n : kSizes) {
    const Floats a = values(n, 1), b = values(n, 2);
    Floats sum(a.size()), in_place = a, scaled = a, filled = a, copied(a.size());
    kernels::add(n, a.data(), b.data(), sum.data());
    kernels::accumulate(n, b.data(), in_place.data());
    kernels::scale(n, -1.5F, scaled.data());
    kernels::fill(n, 2.5F, filled.data());
    kernels::copy(n, a.data(), copied.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(sum[i], a[i] + b[i]);
      ASSERT_EQ(in_place[i], a[i] + b[i]);
      ASSERT_EQ(scaled[i], a[i] * -1.5F);
      ASSERT_EQ(filled[i], 2.5F);
    }
    ASSERT_EQ(copied, a);
  }
}

TEST_P(Elementwise, SumOfRows) {
  const std::int64_t rows = 5;
  for (const std::int64_t n : kSizes) {
    const Floats x = values(rows * n, 1), before = values(n, 2);
    Floats sum = before, added = before;
    kernels::sum_rows(rows, n, x.data(), sum.data(), false);
    kernels::sum_rows(rows, n, x.data(), added.data(), true);
    for (std::int64_t i = 0; i < n; ++i) {
      double expected = 0;
      for (std::int64_t row = 0; row < rows; ++row) expected += static_cast<double>(x[row * n + i]);
      ASSERT_NEAR(sum[i], expected, 1e-6);
      ASSERT_NEAR(added[i], expected + before[i], 1e-6);
    }
  }
}

TEST_P(Elementwise, NothingIsWrittenBehindTheEnd) {
  for (const std::int64_t n : kSizes) {
    Floats a(static_cast<std::size_t>(n) + 1, 7.0F);
    kernels::fill(n, 0.0F, a.data());
    kernels::exp(n, a.data(), a.data());
    ASSERT_EQ(a.back(), 7.0F) << n;
  }
}

TEST_P(Elementwise, SumSquaresAccumulatesInDouble) {
  for (const std::int64_t n : kSizes) {
    const Floats a = values(n, 3);
    const Doubles wide = to_double(a);
    ASSERT_FLOAT_EQ(kernels::sum_squares(n, a.data()), static_cast<float>(dot(wide, wide)));
  }
  // In float the ones would be lost: 1e8 + 1 == 1e8.
  Floats a(4097, 1.0F);
  a[0] = 1e4F;
  ASSERT_EQ(kernels::sum_squares(4097, a.data()), static_cast<float>(1e8 + 4096));
}

TEST_P(Elementwise, Bf16HasTheBitsOfTheScalarConversion) {
  Floats a = values(1000, 4);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float x :
       {0.0F, -0.0F, kInf, -kInf, 1.00390625F, 1.01171875F, std::numeric_limits<float>::max()}) {
    a.push_back(x);
  }
  for (const std::uint32_t nan : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0x7fc00000U}) {
    a.push_back(std::bit_cast<float>(nan));
  }
  const auto n = static_cast<std::int64_t>(a.size());
  std::vector<kernels::Bf16> narrow(a.size());
  Floats wide(a.size());
  kernels::convert(n, a.data(), narrow.data());
  kernels::convert(n, narrow.data(), wide.data());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(narrow[i]);
    ASSERT_EQ(bits, f32_to_bf16(a[i])) << a[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t{bits} << 16);
  }
}

// Distance of y from the exact value, in units of the last place of a float of that size.
double ulps(float y, double exact) {
  const int exponent = std::max(std::ilogb(exact), -126);
  return std::abs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

TEST_P(Elementwise, ExpIsWithinTwoUlpOverTheWholeRange) {
  // Every 997th float of the range, by bit pattern: all magnitudes alike.
  Floats x;
  for (std::uint32_t bits = 0; bits < std::bit_cast<std::uint32_t>(88.7228F); bits += 997) {
    x.push_back(std::bit_cast<float>(bits));
    if (x.back() < 87.3365F) x.push_back(-x.back());
  }
  Floats y(x.size());
  kernels::exp(static_cast<std::int64_t>(x.size()), x.data(), y.data());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], std::exp(double{x[i]})));
  EXPECT_LE(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST_P(Elementwise, ExpAtItsEnds) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Floats x = {0.0F, -0.0F, -87.4F, -1e30F, -kInf, 88.8F, 1e30F, kInf, std::nanf("")};
  Floats y(x.size());
  kernels::exp(static_cast<std::int64_t>(x.size()), x.data(), y.data());
  EXPECT_EQ(Floats(y.begin(), y.end() - 1), (Floats{1, 1, 0, 0, 0, kInf, kInf, kInf}));
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST(Thread, DenormalsAreFlushedOnDemand) {
  const Floats tiny(16, 1e-40F);
  Floats out(16);
  kernels::flush_denormals(true);
  kernels::add(16, tiny.data(), tiny.data(), out.data());
  kernels::flush_denormals(false);
  EXPECT_EQ(out, Floats(16, 0.0F));
  kernels::add(16, tiny.data(), tiny.data(), out.data());
  EXPECT_EQ(out, Floats(16, tiny[0] + tiny[0]));
}

}  // namespace
}  // namespace hyperrun::testing
