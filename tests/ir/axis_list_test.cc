#include "runtime/ir/axis_list.h"

#include <gtest/gtest.h>

#include <vector>

namespace hyperrun {
namespace {

std::vector<AxisId> entries(const AxisList& list) { return {list.begin(), list.end()}; }

TEST(AxisList, IsChangedAsAVectorIs) {
  AxisList list{3, 1};
  list.push_back(4), list.append({0, 2});
  EXPECT_EQ(entries(list), (std::vector<AxisId>{3, 1, 4, 0, 2}));
  EXPECT_EQ(list.front(), 3);
  EXPECT_EQ(list.back(), 2);
  list.erase_if([](AxisId a) { return a == 1 || a == 2; });
  EXPECT_EQ(entries(list), (std::vector<AxisId>{3, 4, 0}));
  list.pop_back();
  EXPECT_EQ(list, (AxisList{3, 4}));
  EXPECT_EQ(AxisList(list.begin() + 1, list.end()), AxisList{4});
  EXPECT_TRUE(AxisList{}.empty());
}

// Elements removed from the end take no part in comparisons.
TEST(AxisList, ComparesAsAVectorDoes) {
  AxisList shortened{1, 5};
  shortened.pop_back();
  const std::vector<AxisList> lists{{}, {0}, {0, 0}, {0, 1}, shortened, {1, 0}, {1, 0, 2}, {1, 2}, {2}};
  for (const AxisList& a : lists)
    for (const AxisList& b : lists) {
      EXPECT_EQ(a < b, entries(a) < entries(b));
      EXPECT_EQ(a == b, entries(a) == entries(b));
    }
}

TEST(AxisList, TakesAsManyAsAMeshMayHave) {
  AxisList list;
  for (std::size_t i = 0; i < kMostAxes; ++i) list.push_back(static_cast<AxisId>(i));
  EXPECT_EQ(list.back(), 31);
  EXPECT_THROW(list.push_back(0), Error);
}

}  // namespace
}  // namespace hyperrun
