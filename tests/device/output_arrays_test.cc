// Parts of arrays that some devices report, and the whole put together from them.
#include "runtime/device/output_arrays.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/ir/zigzag.h"
#include "tests/support/errors.h"

namespace hyperrun::testing {
namespace {

// A plan of two roles along pp, the second of which has the output "x", i32[4, 8]: batch over dp, the
// sequence over the ring, in its zigzag order; all devices along tp hold the same.
struct World {
  Plan plan{{{{"pp", 2}, {"dp", 2}, {"ring", 2}, {"tp", 2}}}, {0}, {Role{}, Role{}}};
  std::vector<std::vector<OutputPart>> parts{16};

  World() {
    Program with;
    with.outputs.push_back({"x", {}, DType::kI32, {4, 8}, {{{1}, {2}}, {}, Reduction::kSum}, {1, 2}});
    with.outputs.back().operand.bytes = Bytes(2 * 4 * 4);
    plan.roles[0].programs.resize(1);
    plan.roles[1].programs = {with};
    for (int device = 0; device < 16; ++device)
      if (plan.role_of(device) == 1) parts[static_cast<std::size_t>(device)] = {part_of(device)};
  }

  const Output& output() const { return plan.roles[1].programs[0].outputs[0]; }

  // Element (b, s) of the whole is 8 b + s.
  OutputPart part_of(int device) const {
    const std::int64_t dp = plan.mesh.index(device, {1}), ring = plan.mesh.index(device, {2});
    const Zigzag order = Zigzag::of(8, 2);
    std::vector<std::int32_t> values;
    for (std::int64_t b = 2 * dp; b < 2 * dp + 2; ++b)
      for (std::int64_t place = 4 * ring; place < 4 * ring + 4; ++place)
        values.push_back(static_cast<std::int32_t>(8 * b + order.position(place)));
    OutputPart part{"x", std::vector<std::byte>(values.size() * 4), reports(output(), plan, device)};
    std::memcpy(part.bytes.data(), values.data(), part.bytes.size());
    return part;
  }

  std::vector<std::int32_t> whole() const { return whole_output_as<std::int32_t>(plan, 0, "x", parts); }
};

TEST(OutputArrays, AreWholeAgain) {
  World world;
  for (auto& of_device : world.parts) of_device = output_parts_from_bytes(to_bytes(of_device));
  std::vector<std::int32_t> expected(32);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(world.whole(), expected);
}

TEST(OutputArrays, AreCutAsDevicesTellThem) {
  const World world;
  const std::vector<std::int32_t> whole = world.whole();
  const auto parts = split_output(world.plan, 0, "x", std::as_bytes(std::span(whole)));
  ASSERT_EQ(parts.size(), world.parts.size());
  for (std::size_t d = 0; d < parts.size(); ++d)
    EXPECT_EQ(to_bytes(parts[d]), to_bytes(world.parts[d])) << "device " << d;
}

TEST(OutputArrays, AreToldOnce) {
  const World world;
  std::size_t told = 0;
  for (const auto& of_device : world.parts)
    for (const OutputPart& part : output_parts_from_bytes(to_bytes(of_device))) told += part.bytes.size();
  EXPECT_EQ(told, 32U * 4) << "along tp one device tells";
}

TEST(OutputArrays, APartThatIsMissingIsNamed) {
  World world;
  world.parts[10].clear();  // pp 1, dp 0, ring 1, tp 0
  EXPECT_ERROR(world.whole(), Code::kControl, "", "device 10 has not told its part of x, 32 bytes");
  world.parts[10] = {world.part_of(10)};
  world.parts[10][0].bytes.pop_back();
  EXPECT_ERROR(world.whole(), Code::kControl, "", "device 10");
}

TEST(OutputArrays, TornBytesAreRefused) {
  const World world;
  const std::string whole = to_bytes(std::vector{world.part_of(8), world.part_of(8)});
  const std::size_t half = whole.size() / 2;
  for (std::size_t n = 1; n < whole.size(); ++n)
    if (n != half) {
      EXPECT_THROW(output_parts_from_bytes(whole.substr(0, n)), Error) << n;
    }
  EXPECT_EQ(output_parts_from_bytes(whole.substr(0, half)).size(), 1U);
  EXPECT_EQ(output_parts_from_bytes(whole).size(), 2U);
}

}  // namespace
}  // namespace hyperrun::testing
