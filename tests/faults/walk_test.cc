// Walks through histories of faults, against closed forms and by hand.
#include "runtime/faults/walk.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/faults/interval.h"
#include "runtime/faults/policy.h"
#include "tests/faults/worlds.h"

namespace hyperrun::testing {
namespace {

constexpr double kHour = 3600, kDay = 86'400;

FaultOutcome by_hand(const FaultModel& spec, const FaultedRun& run, std::string_view policy,
                     std::int64_t save_every, const std::vector<Fault>& faults) {
  return walk({spec, *find_fault_policy(policy), run, costs_of(spec, run), save_every}, faults);
}

// Equation 20 of Daly (2006): the time of a run is M exp(R/M) (exp((work + save)/M) - 1) for each `work`.
TEST(Walk, TakesTheTimeOfDalysFormula) {
  const FaultedRun run{.step = 10, .state_bytes = 0};
  for (const double mtbf : {2000.0, 10'000.0})
    for (const double restart : {5.0, 500.0})
      for (const std::int64_t steps : {5, 30, 120}) {
        FaultModel spec = plain_faults(mtbf, 40, restart);
        spec.horizon = 2e8;  // 20,000 faults and more: the standard error is below 1 %
        const double work = 10.0 * static_cast<double>(steps);
        const double time = mtbf * std::exp(restart / mtbf) * std::expm1((work + 40) / mtbf);
        const double found = outcome(spec, run, "restart", steps, 3).useful / spec.horizon;
        EXPECT_NEAR(found * time / work, 1, 0.02) << mtbf << ' ' << restart << ' ' << steps;
        EXPECT_NEAR(expected_goodput(work, {40, 40}, mtbf, expected_restart(restart, mtbf)), work / time,
                    1e-9);
      }
}

TEST(Walk, OfSavesBesideTheStepIsThatOfItsClosedForm) {
  const FaultedRun run{.step = 10, .state_bytes = 0};
  FaultModel spec = plain_faults(5000, 200, 60);
  spec.save.beside = true, spec.save.share = 0.05;
  spec.horizon = 2e8;
  const double found = outcome(spec, run, "restart", 40, 5).useful / spec.horizon;
  EXPECT_NEAR(found, expected_goodput(400, {10, 200}, 5000, expected_restart(60, 5000)), 0.01 * found);
}

TEST(Walk, PartsAddUpToTheHorizon) {
  FaultModel spec = some_faults();
  spec.device.mtbf /= 30;  // enough that everything happens, faults while it comes back too
  for (const FaultPolicy& policy : fault_policies())
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const FaultOutcome o = outcome(spec, some_run(), policy.name, 30, seed);
      EXPECT_NEAR(o.total(), spec.horizon, 1e-6 * spec.horizon) << policy.name << ' ' << seed;
      for (const double part :
           {o.useful, o.slower, o.saving, o.lost, o.noticing, o.waiting, o.starting, o.reading})
        EXPECT_GE(part, -1e-6) << policy.name << ' ' << seed;
    }
}

TEST(Walk, LosesTheStepsSinceTheLastSave) {
  const FaultedRun run{.step = 10, .state_bytes = 0};
  FaultModel spec = plain_faults(1, 20, 30);
  spec.delays = {.detection = 5, .reaction = 100, .start = 1, .compile = 2, .join = 3};
  spec.horizon = 1000;
  // Steps for 100 s and a save of 20 s: at 350 s two saves and 110 s of a third period have passed.
  const FaultOutcome o = by_hand(spec, run, "stop", 10, {{.time = 350, .kind = FaultKind::kSoftware}});
  EXPECT_DOUBLE_EQ(o.lost, 100);
  EXPECT_DOUBLE_EQ(o.noticing, 105);
  EXPECT_DOUBLE_EQ(o.starting, 6);
  EXPECT_DOUBLE_EQ(o.reading, 30);
  // From 491 s on there are 509 s: four periods and 29 s.
  EXPECT_DOUBLE_EQ(o.useful, 200 + 400 + 29);
  EXPECT_DOUBLE_EQ(o.saving, 2 * 20 + 10 + 4 * 20);
}

TEST(Walk, WaitsForARepairUnlessSparesTakeOverOrItGoesOnWithFewer) {
  const FaultedRun run = some_run();
  FaultModel spec = some_faults();
  spec.horizon = 2 * kDay;
  const std::vector<Fault> host{{.time = kHour, .kind = FaultKind::kHost, .place = 3, .lasting = true}};
  EXPECT_DOUBLE_EQ(by_hand(spec, run, "restart", 30, host).waiting, 36'000 - 10);
  EXPECT_DOUBLE_EQ(by_hand(spec, run, "stop", 30, host).waiting, 36'000 - 1810);
  EXPECT_DOUBLE_EQ(by_hand(spec, run, "spares", 30, host).waiting, 0);
  spec.spares = 7;
  EXPECT_DOUBLE_EQ(by_hand(spec, run, "spares", 30, host).waiting, 36'000 - 10) << "one too few";
  const FaultOutcome elastic = by_hand(spec, run, "elastic", 30, host);
  EXPECT_DOUBLE_EQ(elastic.waiting, 0);
  EXPECT_EQ(elastic.changes, 1) << "it returns to all devices";
  // One of sixteen replicas is missing for ten hours, until the save after the repair. Of each 380 s it
  // trains for 320.
  EXPECT_NEAR(elastic.slower, 36'000.0 * 320 / 380 / 16, 380.0 / 16);
}

TEST(Walk, CopiesInMemoryLoseOnlyStepsSinceTheLastCopy) {
  const FaultedRun run = some_run();
  FaultModel spec = some_faults();
  spec.horizon = kDay;
  const std::vector<Fault> host{{.time = 5 * kHour, .kind = FaultKind::kHost, .place = 3, .lasting = true}};
  const FaultOutcome copies = by_hand(spec, run, "memory", 1, host);
  EXPECT_LT(copies.lost, 21) << "two steps at most";
  EXPECT_DOUBLE_EQ(copies.reading, 6e12 / 1024 / 10e9);
}

TEST(Walk, WithCopiesPaysForTheDiskToo) {
  FaultModel spec = some_faults();
  const FaultCosts costs = costs_of(spec, some_run());
  EXPECT_DOUBLE_EQ(costs.disk.stall, 60);
  const double found = by_hand(spec, some_run(), "memory", 3, {}).useful / spec.horizon;
  EXPECT_NEAR(found, 1 / (1 + costs.copy.stall / 30 + 60.0 / 3600), 1e-5) << "up to a period";
}

TEST(Walk, GrowsAgainIfTheRepairEndsWhileItComesBack) {
  FaultModel spec = some_faults();
  spec.host.repair = 50;  // noticing takes 10 s, coming back 120 s
  spec.horizon = kDay;
  const std::vector<Fault> host{{.time = kHour, .kind = FaultKind::kHost, .place = 3, .lasting = true}};
  const FaultOutcome o = by_hand(spec, some_run(), "elastic", 30, host);
  EXPECT_EQ(o.changes, 1);
  EXPECT_NEAR(o.slower, 300.0 / 15, 1e-6) << "one interval on fifteen of sixteen replicas";
}

TEST(Walk, ReadsFromDiskWhenACopyAndItsOriginalAreLost) {
  const FaultedRun run = some_run();
  FaultModel spec = some_faults();
  spec.horizon = kDay;
  // The second host fails while the first is being replaced, and holds the copy of what the first had.
  std::vector<Fault> hosts{
      {.time = 5.5 * kHour, .kind = FaultKind::kHost, .place = 3, .lasting = true},
      {.time = 5.5 * kHour + 20, .kind = FaultKind::kHost, .place = 300, .lasting = true}};
  const FaultOutcome both = by_hand(spec, run, "memory", 1, hosts);
  EXPECT_GT(both.lost, 1000) << "back to the checkpoint of the fifth hour";
  EXPECT_LT(both.lost, 2000);
  EXPECT_DOUBLE_EQ(both.reading, 60);
  hosts[1].time = 5.5 * kHour + 5;  // while the first is still being noticed
  EXPECT_GT(by_hand(spec, run, "memory", 1, hosts).lost, 1000);
  hosts[1].time = 9 * kHour;  // when there are new copies
  EXPECT_LT(by_hand(spec, run, "memory", 1, hosts).lost, 41);
  hosts[1].time = 5.5 * kHour + 20;
  hosts[1].partner = 0.5;  // another host
  EXPECT_LT(by_hand(spec, run, "memory", 1, hosts).lost, 21);
  EXPECT_NEAR(both.total(), spec.horizon, 1e-6);
}

}  // namespace
}  // namespace hyperrun::testing
