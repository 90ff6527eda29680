#include "runtime/faults/policy.h"

#include <gtest/gtest.h>

namespace hyperrun {
namespace {

TEST(Policy, GoesOnWithWholeReplicasOrAllDevices) {
  const FaultedWorld world{.devices = 64, .replica = 16};
  const FaultPolicy& spares = *find_fault_policy("spares");
  const FaultPolicy& elastic = *find_fault_policy("elastic");
  EXPECT_EQ(devices_to_go_on(spares, world, 66), 64) << "the rest are spares";
  EXPECT_EQ(devices_to_go_on(spares, world, 63), 0) << "it waits";
  EXPECT_EQ(devices_to_go_on(elastic, world, 64), 64);
  EXPECT_EQ(devices_to_go_on(elastic, world, 63), 48);
  EXPECT_EQ(devices_to_go_on(elastic, world, 48), 48) << "idle devices of a replica that lost one take over";
  EXPECT_EQ(devices_to_go_on(elastic, world, 47), 32);
  EXPECT_EQ(devices_to_go_on(elastic, world, 15), 0);
}

TEST(Policy, HaveNamesOfTheirOwn) {
  for (const FaultPolicy& policy : fault_policies()) EXPECT_EQ(find_fault_policy(policy.name), &policy);
  EXPECT_EQ(find_fault_policy("hope"), nullptr);
}

}  // namespace
}  // namespace hyperrun
