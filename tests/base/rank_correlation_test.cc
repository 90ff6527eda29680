#include "runtime/base/rank_correlation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hyperrun {
namespace {

TEST(RankCorrelation, IsOfTheOrderAlone) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {10, 1000, 1001}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2}, {5, 5}), 0) << "which says nothing";
  EXPECT_DOUBLE_EQ(rank_correlation({1}, {5}), 0);
}

// The textbook's example, 1 - 6 sum(d^2) / (n (n^2 - 1)): ten people's IQ and hours before the television.
TEST(RankCorrelation, AgreesWithTheTextbook) {
  EXPECT_NEAR(rank_correlation({106, 86, 100, 101, 99, 103, 97, 113, 112, 110},
                               {7, 0, 27, 50, 28, 29, 20, 12, 6, 17}),
              -29.0 / 165, 1e-12);
}

// The ranks are 0, 1.5, 1.5, 3 and 0, 1, 2, 3.
TEST(RankCorrelation, EqualValuesShareTheirRanks) {
  EXPECT_NEAR(rank_correlation({1, 2, 2, 3}, {1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 2, 3}, {4, 7, 7, 9}), 1);
}

}  // namespace
}  // namespace hyperrun
