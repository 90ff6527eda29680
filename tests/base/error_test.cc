#include "runtime/base/error.h"

#include <gtest/gtest.h>

#include "runtime/base/dtype.h"
#include "runtime/base/units.h"

namespace hyperrun {
namespace {

TEST(Error, RendersPlaceCodeCauseLegalAndRemedy) {
  Error e = Error(Code::kBadValue, "heads is 7")
                .at("job.textproto:3:5")
                .legal("1, 2, 4")
                .fix("choose one of these");
  EXPECT_STREQ(
      e.what(),
      "job.textproto:3:5: error[bad-value]: heads is 7\n  legal: 1, 2, 4\n  fix: choose one of these");
}

TEST(Error, CodesAndNamesAgree) {
  for (Code c : {Code::kUsage, Code::kDoesNotFit, Code::kDeviceHung, Code::kNotFinite})
    EXPECT_EQ(code_from_name(name(c)), c);
}

TEST(Error, EveryCodeHasARemedy) {
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c)
    EXPECT_FALSE(Error(static_cast<Code>(c), "").remedy().empty()) << name(static_cast<Code>(c));
}

TEST(Error, CheckNamesItsPlace) {
  const int before = __LINE__;
  try {
    HR_CHECK(1 == 2, "one is not two");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInternal);
    EXPECT_EQ(e.place(), "tests/base/error_test.cc:" + std::to_string(before + 2))
        << "nothing of the machine that built it";
    EXPECT_EQ(e.cause(), "this is a bug in hyperrun: 1 == 2 does not hold (one is not two)");
  }
}

TEST(DType, Bf16RoundsToNearestEven) {
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.0f)), 1.0f);
  EXPECT_EQ(f32_to_bf16(1.00390625f), f32_to_bf16(1.0f));       // half way, to even
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.01171875f)), 1.015625f);  // half way, to even (up)
}

TEST(Units, BytesPrint) { EXPECT_EQ(to_string(Bytes(1536)), "1.50 KiB"); }

}  // namespace
}  // namespace hyperrun
