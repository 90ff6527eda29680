// Measurements of real devices, which are threads of the test: the results are plausible, and equal on all
// devices.
#include "runtime/calibrate/measure.h"

#include <gtest/gtest.h>

#include "runtime/device/device_threads.h"

namespace hyperrun {
namespace {

std::vector<std::vector<Measurement>> measured_on(const Topology& topology, const std::vector<Point>& points,
                                                  const MeasureOptions& options) {
  DeviceThreads devices(topology, kCalibrationMemory, {kCalibrationMemory, kPointPool});
  std::vector<std::vector<Measurement>> all(static_cast<std::size_t>(devices.size()));
  devices.run([&](int d) {
    all[static_cast<std::size_t>(d)] =
        measure(points, mesh_of_devices(topology.size()), devices.memory(d), devices.world(d), options);
  });
  return all;
}

std::vector<Point> some(const Mesh& mesh, const std::vector<std::string>& wanted) {
  std::vector<Point> list;
  for (const std::string& words : wanted)
    for (const Point& p : points_of(mesh))
      if (describe(p, mesh).starts_with(words)) list.push_back(p);
  EXPECT_EQ(list.size(), wanted.size());
  return list;
}

TEST(Measure, MoreWorkTakesLonger) {
  const std::vector<Point> points = some(
      mesh_of_devices(2),
      {"Gemm trans_b=yes m=16 n=16 k=16", "Gemm trans_b=yes m=256 n=512 k=192", "Add n=1 ", "Add n=196608 ",
       "all-reduce of 8 B among 2", "all-reduce of 4.00 MiB among 2", "Prefetch from=pool bytes=1024",
       "Prefetch from=pool bytes=8388608", "Store to=pool bytes=1024", "Store to=pool bytes=8388608"});
  for (const int hosts : {1, 2}) {
    const auto all = measured_on(Topology::uniform(hosts, 2 / hosts), points, {.seconds = 0.6});
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(all[0][i].nanos, all[1][i].nanos) << "one number for all devices";
      EXPECT_GE(all[0][i].repeats, 3);
    }
    // Collectives are not compared: a small one of busy threads waits for the operating system for any time.
    for (const std::size_t i : {0, 2, 6, 8})
      EXPECT_GT(all[0][i + 1].nanos, 5 * all[0][i].nanos) << hosts << " " << i;
    EXPECT_GT(all[0][5].nanos, 4.0 * (1 << 20) / 1000) << "no memory brings 1 TB/s to a core";
    // No core does 10 TFLOP/s, and none is so slow as the other bound.
    EXPECT_GT(all[0][1].nanos, 2.0 * 256 * 512 * 192 / 1e4);
    EXPECT_LT(all[0][1].nanos, 1e9);
  }
}

TEST(Measure, TakesAboutAsLongAsItMay) {
  int rounds = 0;
  MeasureOptions options{.seconds = 0.5};
  options.on_round = [&](int round, int of) {
    EXPECT_LT(round, of);
    rounds = of;
  };
  const auto points = some(mesh_of_devices(1), {"Add n=1 ", "Gemm trans_b=yes m=16 n=16 k=16"});
  const auto all = measured_on(Topology::one_host(1), points, options);
  EXPECT_EQ(all[0][0].repeats, rounds);
  EXPECT_GT(rounds, 3);
}

}  // namespace
}  // namespace hyperrun
