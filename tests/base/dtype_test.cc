#include "runtime/base/dtype.h"

#include <gtest/gtest.h>
#include <hwy/base.h>

#include <cmath>

namespace hyperrun {
namespace {

// Each finite number, by another's conversion; what is not finite, by the standard.
TEST(Float16, IsWidenedExactly) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto v = static_cast<std::uint16_t>(bits);
    const bool finite = (bits & 0x7c00u) != 0x7c00u;
    if (finite)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(f16_to_f32(v)),
                std::bit_cast<std::uint32_t>(hwy::F32FromF16(std::bit_cast<hwy::float16_t>(v))))
          << bits;
    else
      ASSERT_EQ(std::isnan(f16_to_f32(v)), (bits & 0x3ffu) != 0) << bits;
  }
  EXPECT_EQ(f16_to_f32(0x3c00), 1);
  EXPECT_EQ(f16_to_f32(0xfbff), -65504);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24F);
  EXPECT_EQ(f16_to_f32(0xfc00), -INFINITY);
}

}  // namespace
}  // namespace hyperrun
