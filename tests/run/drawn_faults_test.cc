#include "runtime/run/drawn_faults.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/faults/fault_trace.h"
#include "runtime/rank/fault.h"
#include "runtime/run/run_clock.h"

namespace hyperrun {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

FaultModel model(std::int32_t spares) {
  FaultModel m;
  m.device = {.mtbf = 100, .repair = 7, .lasting = 0.5};
  m.spares = spares;
  m.horizon = 1000;
  return m;
}

TEST(DrawnFaults, AreThoseOfTheSimulation) {
  const DrawnFaults drawn(model(2), 8, 11);
  const std::vector<Fault> simulated = draw_faults(model(2), 10, 11);
  ASSERT_EQ(drawn.history().size(), simulated.size());
  ASSERT_GT(simulated.size(), 50U);
  for (std::size_t f = 0; f < simulated.size(); ++f) {
    EXPECT_EQ(drawn.history()[f].time, simulated[f].time);
    EXPECT_EQ(drawn.history()[f].place, simulated[f].place);
    EXPECT_EQ(drawn.history()[f].lasting, simulated[f].lasting);
  }
}

// Each fault of a device that runs ends its run; others take devices only.
TEST(DrawnFaults, HitTheDevicesThatRun) {
  DrawnFaults drawn(model(2), 8, 11);
  for (double now = 0; const std::optional<Fault> next = drawn.start(8);) {
    EXPECT_FALSE(drawn.pass(next->time - 1e-9));
    EXPECT_LT(next->place, 8);
    EXPECT_EQ(drawn.pass(next->time), next->time);
    EXPECT_GT(next->time, now);
    now = next->time;
    EXPECT_FALSE(drawn.pass(now + 0.5)) << "nobody runs";
  }
}

TEST(DrawnFaults, DevicesAreThereAgainAfterTheirRepair) {
  DrawnFaults drawn(model(0), 8, 11);
  EXPECT_EQ(drawn.time_until(8), 0);
  EXPECT_EQ(drawn.time_until(9), kNever);
  while (drawn.healthy() == 8) drawn.pass(drawn.start(8)->time);
  const double there = drawn.time_until(8);
  EXPECT_LT(there, kNever);
  drawn.pass(there - 1e-6);
  EXPECT_LT(drawn.healthy(), 8);
  drawn.pass(there);
  EXPECT_EQ(drawn.healthy(), 8);
}

TEST(DrawnFaults, TravelWithTheirTime) {
  FaultSpec fault{.device = 3};
  fault.at = 1'764'396'345'123'456'789;
  tasks::Invocation invocation;
  set_fault(invocation, fault);
  EXPECT_EQ(fault_of(invocation, 3)->at, fault.at);
  EXPECT_EQ(to_text(fault, 1), "kill:1:1764396345123456789");
}

TEST(RunClock, ThePacedOneIsSlowerAndSkipsWaits) {
  RunClock clock(true, 100);
  clock.begin(Nanos(5'000'000'000));
  EXPECT_DOUBLE_EQ(clock.at(Nanos(7'000'000'000)), 0.02);
  const double later = clock.at(Nanos(std::int64_t{1} << 62)) + 1000;  // far behind the present
  clock.wait_until(later);
  EXPECT_GT(clock.at(Nanos(7'000'000'000)), 0.02);
  EXPECT_NEAR(clock.at(clock.time_of(later + 3)), later + 3, 1e-3);
}

}  // namespace
}  // namespace hyperrun
