// The parts of an executed run's time are compared with those found by hand.
#include "runtime/faults/executed_times.h"

#include <gtest/gtest.h>

#include "runtime/faults/healthy_devices.h"

namespace hyperrun::testing {
namespace {

TEST(ExecutedTimes, OfARunWithAFaultAndAWait) {
  ExecutedTimes t;
  t.start(-5);  // the first start is before the account
  t.step(1, 0, 10, true, false);
  t.step(2, 10, 20, true, false);
  t.step(3, 22, 32, true, true);  // a save of 2 s before it
  t.step(4, 32, 42, true, false);
  t.fault(45);
  t.undo(2);
  t.waited(47, 100);
  t.start(101);
  t.read(104);
  t.fault(105);  // a second one before any step
  t.start(107);
  t.read(110);
  t.step(3, 111, 121, true, false);
  const FaultOutcome o = t.outcome(9);
  EXPECT_DOUBLE_EQ(o.useful, 3 * 9);
  EXPECT_DOUBLE_EQ(o.slower, 5);  // five steps of 10 s in place of 9 s
  EXPECT_DOUBLE_EQ(o.saving, 2);
  EXPECT_DOUBLE_EQ(o.lost, 2 * 9 + 3);
  EXPECT_DOUBLE_EQ(o.noticing, (47 - 45) + (101 - 100) + (107 - 105));
  EXPECT_DOUBLE_EQ(o.waiting, 53);
  EXPECT_DOUBLE_EQ(o.starting, 3 + 3);
  EXPECT_DOUBLE_EQ(o.reading, 1 + 1);
  EXPECT_DOUBLE_EQ(o.total(), 121);
  EXPECT_EQ(o.faults, 2);
  EXPECT_EQ(t.saves(), 1);
  EXPECT_EQ(t.steps(), 3);
}

TEST(ExecutedTimes, AFaultWithinTheFirstStepCounts) {
  ExecutedTimes t;
  t.begin(0);
  t.fault(4);
  t.start(5);
  t.read(7);
  t.begin(8);  // the first step is begun again
  t.step(1, 10, 20, true, true);
  const FaultOutcome o = t.outcome(10);
  EXPECT_DOUBLE_EQ(o.lost, 4);
  EXPECT_DOUBLE_EQ(o.noticing, 1);
  EXPECT_DOUBLE_EQ(o.starting, 2);
  EXPECT_DOUBLE_EQ(o.reading, 3);
  EXPECT_DOUBLE_EQ(o.total(), 20);
  EXPECT_EQ(o.faults, 1);
  EXPECT_EQ(t.saves(), 0) << "nothing was saved before the first step";
}

TEST(ExecutedTimes, AReturnToMoreDevicesIsNoFault) {
  ExecutedTimes t;
  t.step(1, 0, 10, true, false);
  t.step(2, 10, 30, false, false);
  t.start(33);
  t.read(40);
  t.step(3, 41, 51, true, false);
  const FaultOutcome o = t.outcome(t.step_on_all());
  EXPECT_EQ(o.changes, 1);
  EXPECT_EQ(o.faults, 0);
  EXPECT_DOUBLE_EQ(o.slower, 10);
  EXPECT_DOUBLE_EQ(o.starting, 10);
  EXPECT_DOUBLE_EQ(o.total(), 51);
}

TEST(HealthyDevices, AHostTakesItsDevicesUntilTheyAreRepaired) {
  FaultModel spec;
  spec.host = {.mtbf = 1, .devices = 4, .repair = 100};
  HealthyDevices healthy(10);
  EXPECT_EQ(healthy.lose(spec, {.time = 1, .kind = FaultKind::kHost, .place = 9, .lasting = true}, 8), 2)
      << "of the spares only";
  EXPECT_EQ(healthy.lose(spec, {.time = 2, .kind = FaultKind::kHost, .place = 9, .lasting = true}, 8), 0)
      << "it is gone already";
  EXPECT_EQ(healthy.lose(spec, {.time = 3, .kind = FaultKind::kHost, .place = 2, .lasting = true}, 8), 4);
  EXPECT_EQ(healthy.lose(spec, {.time = 4, .kind = FaultKind::kHost, .place = 2}, 4), 0) << "does not last";
  EXPECT_EQ(healthy.count(), 4);
  EXPECT_EQ(healthy.next_repair(), 101);
  healthy.take_back();
  EXPECT_EQ(healthy.count(), 6);
}

}  // namespace
}  // namespace hyperrun::testing
