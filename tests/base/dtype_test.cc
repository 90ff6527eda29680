#include "runtime/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hyperrun {
namespace {

// The expected values follow IEEE 754-2008, 3.4.
TEST(Float16, IsWidenedExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto v = static_cast<std::uint16_t>(bits);
    const auto exponent = static_cast<int>(bits >> 10 & 0x1f), fraction = static_cast<int>(bits & 0x3ff);
    if (exponent == 0x1f) {
      ASSERT_EQ(std::isnan(f16_to_f32(v)), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(f16_to_f32(v)), fraction == 0) << bits;
    } else {
      const double size =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 15 - 10);
      ASSERT_EQ(static_cast<double>(f16_to_f32(v)), bits < 0x8000 ? size : -size) << bits;
    }
    ASSERT_EQ(std::signbit(f16_to_f32(v)), bits >= 0x8000) << bits;
  }
}

}  // namespace
}  // namespace hyperrun
