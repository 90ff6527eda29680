// Small things that every folder uses.
#include <gtest/gtest.h>

#include "runtime/base/format.h"
#include "runtime/base/median.h"

namespace hyperrun {
namespace {

TEST(Format, AnyLength) {
  EXPECT_EQ(format("%s", ""), "");
  EXPECT_EQ(format("%d of %.1f %%", 3, 4.25), "3 of 4.2 %");
  const std::string tall(5000, 'x');
  EXPECT_EQ(format("<%s>", tall.c_str()), "<" + tall + ">");
}

TEST(Median, OddAndEven) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1}), 5);
  EXPECT_EQ(median({7, 100, 1, 3}), 5);
}

}  // namespace
}  // namespace hyperrun
