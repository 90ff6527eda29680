#include "runtime/run/chaos.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/rank/fault.h"

namespace hyperrun {
namespace {

tasks::Invocation step(std::int64_t done_before) { return {.step = done_before}; }
bool everywhere(std::int32_t) { return true; }

TEST(Chaos, ASeedMeansTheSameFaults) {
  const ChaosSpec spec{.seed = 5, .faults = 20};
  const Chaos a(spec, 8, 100, true), b(spec, 8, 100, true), c({.seed = 6, .faults = 20}, 8, 100, true);
  EXPECT_EQ(a.faults(), b.faults());
  EXPECT_NE(a.faults(), c.faults());
}

TEST(Chaos, RandomFaultsAreOfTheRun) {
  const Chaos chaos({.faults = 400}, 3, 10, true);
  std::set<std::string> kinds;
  std::set<std::int32_t> devices, steps;
  int saving = 0;
  for (const FaultSpec& f : chaos.faults()) {
    kinds.insert(f.kind), devices.insert(f.device), steps.insert(f.step);
    saving += f.saving ? 1 : 0;
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"cut", "kill", "slow", "stop"}));
  EXPECT_EQ(devices, (std::set<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(*steps.begin(), 0) << "some happen while the devices start";
  EXPECT_EQ(*steps.rbegin(), 10);
  EXPECT_GT(saving, 0);
  const Chaos without_saves({.faults = 100}, 3, 10, false);
  for (const FaultSpec& f : without_saves.faults()) EXPECT_FALSE(f.saving);
}

TEST(Chaos, AFaultHappensOnceInItsStepOnItsDevice) {
  ChaosSpec spec;
  spec.certain = {{.device = 1, .step = 3}};
  Chaos chaos(spec, 2, 5, true);
  for (std::int64_t done = 0; done < 5; ++done) {
    tasks::Invocation i = step(done);
    chaos.add_fault(i, false, everywhere);
    EXPECT_EQ(fault_of(i, 1).has_value(), done == 2) << done;
    EXPECT_FALSE(fault_of(i, 0)) << done;
  }
  tasks::Invocation again = step(2);
  chaos.add_fault(again, false, everywhere);
  EXPECT_FALSE(fault_of(again, 1));
}

// Invocations are issued ahead: a second fault behind a deadly one would never happen.
TEST(Chaos, NoFaultFollowsADeadlyOneBeforeTheNextStart) {
  ChaosSpec spec;
  spec.certain = {{.step = 1}, {.step = 1}};
  Chaos chaos(spec, 1, 5, true);
  for (int start = 0; start < 3; ++start) {
    EXPECT_FALSE(chaos.of_start());
    int faults = 0;
    for (std::int64_t done = 0; done < 5; ++done) {
      tasks::Invocation i = step(done);
      chaos.add_fault(i, false, everywhere);
      faults += fault_of(i, 0) ? 1 : 0;
    }
    EXPECT_EQ(faults, start < 2 ? 1 : 0);
  }
}

TEST(Chaos, AFaultWhileSavingWaitsForASave) {
  ChaosSpec spec;
  spec.certain = {{.step = 3, .saving = true}};
  Chaos chaos(spec, 1, 9, true);
  tasks::Invocation trains = step(3), saves = step(4);
  chaos.add_fault(trains, false, everywhere);
  EXPECT_FALSE(fault_of(trains, 0));
  chaos.add_fault(saves, true, everywhere);
  EXPECT_TRUE(fault_of(saves, 0));
}

TEST(Chaos, AFaultWaitsForAnInvocationOfItsDevice) {
  ChaosSpec spec;
  spec.certain = {{.device = 3, .step = 1}};
  Chaos chaos(spec, 4, 9, true);
  tasks::Invocation others = step(0), own = step(0);
  chaos.add_fault(others, false, [](std::int32_t d) { return d < 2; });
  EXPECT_FALSE(fault_of(others, 3));
  chaos.add_fault(own, false, everywhere);
  EXPECT_TRUE(fault_of(own, 3));
}

TEST(Chaos, DevicesAreGoneUntilTheyAreBack) {
  ChaosSpec spec;
  spec.certain = {{.step = 2, .for_good = true, .back = 6}, {.step = 4, .for_good = true}, {.step = 4}};
  Chaos chaos(spec, 4, 9, true);
  EXPECT_EQ(chaos.gone(5), 0) << "nothing has happened yet";
  for (std::int64_t done = 0; done < 6; ++done) {
    chaos.of_start();
    tasks::Invocation i = step(done);
    chaos.add_fault(i, false, everywhere);
  }
  EXPECT_EQ(chaos.gone(5), 2);
  EXPECT_EQ(chaos.gone(6), 1);
}

TEST(Chaos, OneFaultAStart) {
  ChaosSpec spec;
  spec.certain = {{.device = 1}, {.kind = std::string(kStopFault)}};
  Chaos chaos(spec, 2, 9, true);
  EXPECT_EQ(chaos.of_start()->device, 1);
  EXPECT_EQ(chaos.of_start()->kind, kStopFault);
  EXPECT_FALSE(chaos.of_start());
}

}  // namespace
}  // namespace hyperrun
