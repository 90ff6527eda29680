// Tests of small functions on texts and lists that every folder uses.
#include <gtest/gtest.h>

#include "runtime/base/joined.h"
#include "runtime/base/median.h"
#include "runtime/base/whole_number.h"

namespace hyperrun {
namespace {

TEST(WholeNumber, IsReadOrSaysWhyNot) {
  std::int32_t n = 7;
  EXPECT_EQ(why_not_whole("-12", -20, 20, n), "");
  EXPECT_EQ(n, -12);
  EXPECT_EQ(why_not_whole("010", 0, 20, n), "");
  EXPECT_EQ(n, 10);
  for (const char* text : {"", "-", "1.5", "1e3", " 1", "+1", "0x1", "one"})
    EXPECT_EQ(why_not_whole(text, 0, 20, n), "\"" + std::string(text) + "\" is no whole number");
  EXPECT_EQ(why_not_whole("21", 0, 20, n), "21 is more than 20");
  EXPECT_EQ(why_not_whole("99999999999", 0, 20, n), "99999999999 is more than 20");
  EXPECT_EQ(why_not_whole("-99999999999", 0, 20, n), "-99999999999 is less than 0");
  EXPECT_EQ(n, 10) << "what is refused changes nothing";
  std::uint64_t seed = 0;
  EXPECT_EQ(why_not_whole<std::uint64_t>("-1", 0, UINT64_MAX, seed), "-1 is less than 0");
  EXPECT_EQ(why_not_whole<std::uint64_t>("18446744073709551615", 0, UINT64_MAX, seed), "");
  EXPECT_EQ(seed, UINT64_MAX);
}

TEST(Median, OddAndEven) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1}), 5);
  EXPECT_EQ(median({7, 100, 1, 3}), 5);
}

TEST(Joined, ListsWhatFormatWrites) {
  EXPECT_EQ(joined(std::vector<std::string>{"dp", "tp", "pp"}), "dp, tp, pp");
  EXPECT_EQ(joined(std::vector<int>{2, 4}, " x "), "2 x 4");
  EXPECT_EQ(joined(std::vector<int>{}), "");
}

}  // namespace
}  // namespace hyperrun
