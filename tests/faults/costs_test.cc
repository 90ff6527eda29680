// What saves take, by hand.
#include "runtime/faults/costs.h"

#include <gtest/gtest.h>

#include "tests/faults/worlds.h"

namespace hyperrun::testing {
namespace {

TEST(Costs, OfASaveThatBlocksAreBytesOverBandwidth) {
  FaultModel spec = some_faults();    // 100 GB/s
  const FaultedRun run = some_run();  // 6 TB on 1,024 devices
  EXPECT_DOUBLE_EQ(costs_of(spec, run).disk.stall, 60);
  EXPECT_DOUBLE_EQ(costs_of(spec, run).disk.latency, 60);
  EXPECT_DOUBLE_EQ(costs_of(spec, run).read, 60);
  spec.storage.device_bandwidth = 5e7;  // of all: 51.2 GB/s
  EXPECT_DOUBLE_EQ(costs_of(spec, run).disk.stall, 6e12 / 51.2e9);
  spec.save.write_time = 7, spec.save.read_time = 8;
  EXPECT_DOUBLE_EQ(costs_of(spec, run).disk.stall, 7);
  EXPECT_DOUBLE_EQ(costs_of(spec, run).read, 8);
}

TEST(Costs, OfASaveBesideTheStepsAreTheCopyAndAShareOfTheWriting) {
  FaultModel spec = some_faults();
  spec.save = {.beside = true, .snapshot = 2e9, .share = 0.05};
  const double snapshot = 6e12 / 1024 / 2e9;
  const SaveCost disk = costs_of(spec, some_run()).disk;
  EXPECT_DOUBLE_EQ(disk.stall, snapshot + 3);
  EXPECT_DOUBLE_EQ(disk.latency, snapshot + 60);
}

TEST(Costs, OfCopiesAreOfADevicesPart) {
  const FaultCosts costs = costs_of(some_faults(), some_run());  // 10 GB/s, a tenth of which steps notice
  EXPECT_DOUBLE_EQ(costs.copy.latency, 6e12 / 1024 / 10e9);
  EXPECT_DOUBLE_EQ(costs.copy.stall, 0.1 * costs.copy.latency);
  EXPECT_DOUBLE_EQ(costs.fetch, costs.copy.latency);
}

TEST(Costs, FewerDevicesTrainTheirShareOfTheBatch) {
  FaultedRun run = some_run();
  run.smaller_share = 0.75, run.smaller_speed = 0.8;
  EXPECT_DOUBLE_EQ(speed_with(run, 1024), 1);
  EXPECT_DOUBLE_EQ(speed_with(run, 960), 0.9375 * 0.95) << "a quarter of the way";
  EXPECT_DOUBLE_EQ(speed_with(run, 768), 0.75 * 0.8);
  EXPECT_DOUBLE_EQ(speed_with(run, 512), 0.5 * 0.8);
  run.smaller_speed = 5;
  EXPECT_DOUBLE_EQ(speed_with(run, 512), 1) << "nothing is faster than all";
}

TEST(Spares, OfAShareAreWholeHosts) {
  FaultModel spec = some_faults();  // 16 spares, hosts of 8
  spec.spare_share = 1.0 / 64;
  EXPECT_EQ(spares_of(spec, 1024), 16 + 16);
  EXPECT_EQ(spares_of(spec, 1088), 16 + 24);
  spec.spare_share = 0;
  EXPECT_EQ(spares_of(spec, 1 << 20), 16);
}

}  // namespace
}  // namespace hyperrun::testing
