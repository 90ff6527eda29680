#include "runtime/verify/whole.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> part(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A mesh in which device d has coordinates (d / 2, d % 2).
const Mesh kMesh{{{"a", 2}, {"b", 2}}};

TEST(Whole, PutsSlicesTogether) {
  const Placed columns_and_rows{DType::kF32, {2, 2}, Layout{{{1}, {0}}, {}, Reduction::kSum}, {}};
  EXPECT_THAT(whole(columns_and_rows, kMesh, {part({1}), part({2}), part({3}), part({4})}),
              ElementsAre(1, 3, 2, 4));
}

// Two devices have parts of four chunks: the first and the last, and the two in between.
TEST(Whole, PutsARingInOrder) {
  const Placed t{DType::kF32, {2, 4}, Layout{{{}, {0}}, {}, Reduction::kSum}, {1, 2}};
  const Parts parts{part({0, 3, 4, 7}), {}, part({1, 2, 5, 6}), {}};
  EXPECT_THAT(whole(t, kMesh, parts), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Whole, ReducesPartialResults) {
  Placed t{DType::kF32, {4}, Layout{{{0}}, {0b10}, Reduction::kSum}, {}};
  const Parts parts{part({1, 5}), part({2, -7}), part({3, 0}), part({4, 9})};
  EXPECT_THAT(whole(t, kMesh, parts), ElementsAre(3, -2, 7, 9));
  t.layout.reduction = Reduction::kMax;
  EXPECT_THAT(whole(t, kMesh, parts), ElementsAre(2, 5, 4, 9));
}

TEST(Whole, OfAScalar) {
  EXPECT_THAT(whole({DType::kF32, {}, Layout{{}, {0b11}, Reduction::kSum}, {}}, kMesh,
                    {part({1}), part({2}), part({3}), part({4})}),
              ElementsAre(10));
}

TEST(Disagreement, IsBetweenHoldersOfOnePart) {
  const Placed rows{DType::kF32, {2}, Layout{{{0}}, {}, Reduction::kSum}, {}};
  EXPECT_EQ(disagreement(rows, kMesh, {part({1}), part({1}), part({2}), part({2})}), std::nullopt);
  EXPECT_THAT(disagreement(rows, kMesh, {part({1}), part({1}), part({2}), part({3})}), Optional(Pair(2, 3)));
  EXPECT_THAT(disagreement(rows, kMesh, {part({0.0F}), part({-0.0F}), part({2}), part({2})}),
              Optional(Pair(0, 1)));
  const Placed sums{DType::kF32, {1}, Layout{{{}}, {0b10}, Reduction::kSum}, {}};
  EXPECT_EQ(disagreement(sums, kMesh, {part({1}), part({2}), part({1}), part({2})}), std::nullopt);
  EXPECT_THAT(disagreement(sums, kMesh, {part({1}), part({2}), part({2}), part({1})}), Optional(Pair(0, 2)));
}

TEST(RelativeDifference, IsOfTheNorm) {
  EXPECT_DOUBLE_EQ(relative_difference({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative_difference({3, 4}, {3, 5}), 0.2);
  EXPECT_DOUBLE_EQ(relative_difference({0, 0}, {0, 2}), 2);
}

TEST(RelativeDifference, IsInfiniteWithoutNumbers) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(relative_difference({1, kNan}, {1, 1}), kInfinite);
  EXPECT_EQ(relative_difference({1, 1}, {1, static_cast<double>(kNan)}), kInfinite);
  EXPECT_EQ(relative_difference({1}, {1, 1}), kInfinite);
}

}  // namespace
}  // namespace hyperrun::testing
