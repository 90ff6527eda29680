// The points are legal Programs, of all classes, for groups of all sizes.
#include "runtime/calibrate/points.h"

#include <gtest/gtest.h>

#include <set>

namespace hyperrun {
namespace {

TEST(CalibrationMesh, HasAxesOfPrimeSizes) {
  const auto sizes = [](int devices) {
    std::vector<int> list;
    for (const MeshAxis& axis : mesh_of_devices(devices).axes) list.push_back(axis.size);
    return list;
  };
  EXPECT_EQ(sizes(1), (std::vector<int>{1}));
  EXPECT_EQ(sizes(7), (std::vector<int>{7}));
  EXPECT_EQ(sizes(12), (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(mesh_of_devices(360).devices(), 360);
}

TEST(CalibrationPoints, AreLegalPrograms) {
  for (const int devices : {1, 4}) {
    const Mesh mesh = mesh_of_devices(devices);
    const std::vector<Point> points = points_of(mesh);
    const Plan plan = plan_of(points, mesh, 1e5);
    ASSERT_EQ(plan.roles[0].programs.size(), points.size());
    EXPECT_EQ(plan.peak(), kPointMemory);
    for (const Program& program : plan.roles[0].programs) {
      EXPECT_NO_THROW(verify(program)) << program.name;
      EXPECT_GE(program.instrs.size(), 1u);
      EXPECT_LE(program.instrs.size(), 64u);
    }
  }
}

// Otherwise a repeated instruction would find its operands in the nearest cache, unlike in a step.
TEST(CalibrationPoints, NextToEachOtherTouchOtherMemory) {
  const Mesh mesh = mesh_of_devices(1);
  const Plan plan = plan_of(points_of(mesh), mesh, 1e5);
  for (const Program& program : plan.roles[0].programs) {
    if (program.instrs.size() < 2) continue;
    const Operand &first = program.instrs[0].in[0], &second = program.instrs[1].in[0];
    EXPECT_NE(first.offset, second.offset) << program.name;
  }
}

TEST(CalibrationPoints, CollectivesAreOfGroupsOfAllSizes) {
  const Mesh mesh = mesh_of_devices(12);
  std::set<std::int64_t> groups, bytes;
  for (const Point& p : points_of(mesh)) {
    const auto* c = std::get_if<instr::Collective>(&p.instr.op);
    EXPECT_EQ(c != nullptr, p.cls == PointClass::kCollective);
    if (c == nullptr) continue;
    groups.insert(mesh.size(c->axes));
    if (c->kind == instr::CollectiveKind::kAllReduce) bytes.insert(p.instr.in[0].bytes.value);
  }
  EXPECT_EQ(groups, (std::set<std::int64_t>{2, 4, 12}));
  EXPECT_EQ(*bytes.begin(), 8);
  EXPECT_EQ(*bytes.rbegin(), 16 << 20);
  for (const Point& p : points_of(mesh_of_devices(1))) EXPECT_NE(p.cls, PointClass::kCollective);
}

TEST(CalibrationPoints, AreToldApart) {
  const Mesh mesh = mesh_of_devices(4);
  std::set<std::string> words;
  for (const Point& p : points_of(mesh)) words.insert(describe(p, mesh));
  EXPECT_TRUE(words.contains("all-reduce of 16.0 MiB among 4"));
  EXPECT_TRUE(words.contains("Gemm trans_b=yes m=256 n=256 k=64, bfloat16"));
  EXPECT_EQ(words.size(), points_of(mesh).size());
}

}  // namespace
}  // namespace hyperrun
