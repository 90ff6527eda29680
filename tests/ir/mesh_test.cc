#include "runtime/ir/mesh.h"

#include <gtest/gtest.h>

#include "runtime/ir/layout.h"

namespace hyperrun {
namespace {

const Mesh kMesh{{{"dp", 2}, {"cp", 3}, {"tp", 4}}};

TEST(Mesh, TheFirstAxisChangesSlowest) {
  EXPECT_EQ(kMesh.devices(), 24);
  EXPECT_EQ(kMesh.coordinate(0, 0), 0);
  EXPECT_EQ(kMesh.coordinate(3, 2), 3);
  EXPECT_EQ(kMesh.coordinate(4, 1), 1);
  EXPECT_EQ(kMesh.coordinate(12, 0), 1);
  for (std::int64_t d = 0; d < 24; ++d)
    EXPECT_EQ(kMesh.coordinate(d, 0) * 12 + kMesh.coordinate(d, 1) * 4 + kMesh.coordinate(d, 2), d);
}

TEST(Mesh, IndexFollowsTheListsOrder) {
  const std::int64_t device = 12 + 2 * 4 + 3;  // dp 1, cp 2, tp 3
  EXPECT_EQ(kMesh.index(device, {0, 2}), 1 * 4 + 3);
  EXPECT_EQ(kMesh.index(device, {2, 0}), 3 * 2 + 1);
  EXPECT_EQ(kMesh.index(device, AxisList{}), 0);
  EXPECT_EQ(kMesh.size(AxisList{2, 0}), 8);
  EXPECT_EQ(kMesh.size(AxisList{}), 1);
}

TEST(Mesh, AGroupIsOrderedByIndexAndContainsTheDevice) {
  EXPECT_EQ(kMesh.group(5, {2}), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(kMesh.group(5, {0}), (std::vector<int>{5, 17}));
  EXPECT_EQ(kMesh.group(0, {2, 0}), (std::vector<int>{0, 12, 1, 13, 2, 14, 3, 15}));
  EXPECT_EQ(kMesh.group(7, {}), (std::vector<int>{7}));
}

// The groups along any axes cut the mesh into disjoint parts, the same for all members.
TEST(Mesh, GroupsPartitionTheDevices) {
  for (const AxisList& axes : {AxisList{0}, AxisList{1}, AxisList{2, 1}, AxisList{0, 1, 2}})
    for (int d = 0; d < 24; ++d) {
      const std::vector<int> group = kMesh.group(d, axes);
      EXPECT_EQ(group[static_cast<std::size_t>(kMesh.index(d, axes))], d);
      for (int member : group) EXPECT_EQ(kMesh.group(member, axes), group);
    }
}

TEST(Mesh, AxesByName) {
  EXPECT_EQ(kMesh.find("cp"), 1);
  EXPECT_EQ(kMesh.find("ep"), -1);
  EXPECT_EQ(kMesh.to_string({2, 0}), "tp+dp");
  EXPECT_EQ(kMesh.to_string({}), "-");
  EXPECT_EQ(kMesh.list(set_of({2, 0})), (AxisList{0, 2}));
}

TEST(Layout, LocalShapeAndText) {
  const Layout layout{{{0}, {}, {2, 1}}, {}, Reduction::kSum};
  EXPECT_EQ(local_shape({8, 5, 24}, layout, kMesh), (std::vector<std::int64_t>{4, 5, 2}));
  EXPECT_EQ(to_string(layout, kMesh), "[dp, -, tp+cp]");
  EXPECT_EQ(layout.dim_of(1), 2);
  EXPECT_EQ(layout.dim_of(0), 0);
  const Layout partial{{{}, {2}}, set_of({0, 1}), Reduction::kMax};
  EXPECT_EQ(to_string(partial, kMesh), "[-, tp] partial(max: dp+cp)");
  EXPECT_EQ(partial.used(), set_of({0, 1, 2}));
  EXPECT_EQ(partial.split_axes(), set_of({2}));
  EXPECT_ANY_THROW(local_shape({7, 5, 24}, layout, kMesh)) << "dp does not divide 7";
}

}  // namespace
}  // namespace hyperrun
