// Steps on machines with another value of a guess, against durations calculated by hand.
#include "runtime/sim/guess_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/sim/programs.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;

Figure guess(double value, double low, double high) {
  return {value, Evidence::kPlaceholder, "s", low, high, "r"};
}

// A FLOP takes 1 ns, a launch nothing.
SupernodeSpec spec_with_guesses() {
  SupernodeSpec spec = slow_machine();
  Machine m = machine_of(spec);
  m.name = "guessed";
  m.cube.f32 = guess(1e9, 0.5e9, 2e9);
  m.launch_cube = guess(0, 0, 100);
  m.vector = {1e9, Evidence::kPlaceholder, "s"};
  m.hbm_bandwidth = {1e18, Evidence::kMeasured, "s"};
  m.launch_vector = guess(0, 0, 7);
  spec.machine = m;
  return spec;
}

std::vector<FigurePath> figures() {
  const auto words = [](double v) { return std::to_string(static_cast<int>(v)); };
  return {{"cube", "cube", [](Machine& m) -> Figure& { return m.cube.f32; }, words},
          {"launch_vector", "launch_vector", [](Machine& m) -> Figure& { return m.launch_vector; }, words},
          {"launch", "launch", [](Machine& m) -> Figure& { return m.launch_cube; }, words},
          {"vector", "vector", [](Machine& m) -> Figure& { return m.vector; }, words},
          {"hbm", "hbm", [](Machine& m) -> Figure& { return m.hbm_bandwidth; }, words}};
}

Plan two_products() {
  Plan plan = ProgramBuilder().compute(StreamKind::kCube, 1000).compute(StreamKind::kCube, 600).plan();
  plan.roles.front().programs.front().name = "train";
  return plan;
}

StepRange range_of_two_products(const GuessOptions& options = {}, const SimOptions& sim = {}) {
  const Plan plan = two_products();
  const SupernodeSpec spec = spec_with_guesses();
  return time_range(spec, figures(), ProgramTime(plan, "train", spec, sim), options);
}

TEST(GuessEffects, AreTheStepsAtBothEndsTheLargestFirst) {
  const StepRange r = range_of_two_products();
  EXPECT_EQ(r.step, Nanos(1600));
  ASSERT_EQ(r.guesses.size(), 3u);
  EXPECT_EQ(r.guesses[0].name, "cube");
  EXPECT_EQ(r.guesses[0].at_low, Nanos(3200));
  EXPECT_EQ(r.guesses[0].at_high, Nanos(800));
  EXPECT_EQ(r.guesses[1].name, "launch");
  EXPECT_EQ(r.guesses[1].at_low, Nanos(1600));
  EXPECT_EQ(r.guesses[1].at_high, Nanos(1800)) << "two launches of 100 ns";
  EXPECT_EQ(r.guesses[2].swing(), Nanos(0)) << "nothing runs on the vector stream";
}

TEST(GuessEffects, TogetherAtTheirBetterAndWorseEndsAreTheRange) {
  const StepRange r = range_of_two_products();
  EXPECT_EQ(r.fastest, Nanos(800)) << "a fast cube, no launch";
  EXPECT_EQ(r.slowest, Nanos(3200 + 200)) << "a slow cube and slow launches";
  const Machine worse = machine_at(RangeEnd::kWorse, spec_with_guesses(), figures(), r);
  EXPECT_EQ(worse.cube.f32.value, 0.5e9);
  EXPECT_EQ(worse.launch_cube.value, 100);
  EXPECT_EQ(worse.launch_vector.value, 0) << "stays where it has no effect";
}

TEST(GuessEffects, AreCountedByEvidenceAndNamedWhereTheyAreNotSimulated) {
  const StepRange r = range_of_two_products();
  EXPECT_EQ(r.counts, (EvidenceCounts{.measured = 1, .data_sheet = 0, .guessed = 4}));
  EXPECT_THAT(r.without_range, ElementsAre("vector"));
  const StepRange late = range_of_two_products({.use = {}, .most = 0, .progress = {}});
  EXPECT_THAT(late.not_simulated, ElementsAre("cube", "launch_vector", "launch"));
  EXPECT_EQ(late.slowest, Nanos(1600)) << "nothing was varied";
}

TEST(GuessEffects, AboutMemoryChangeNoTimeAndSayWhetherThereIsRoom) {
  const Plan plan = two_products();
  SupernodeSpec spec = spec_with_guesses();
  spec.machine->hbm = {100, Evidence::kDataSheet, "s"};
  spec.machine->reserve = guess(10, 5, 20);
  std::vector<FigurePath> all = figures();
  all.push_back({"reserve", "reserve", [](Machine& m) -> Figure& { return m.reserve; },
                 [](double v) { return std::to_string(static_cast<int>(v)); }});
  const ProgramTime time(plan, "train", spec);
  const StepRange r = time_range(spec, all, time, {.use = {Bytes(85), {}}, .most = 0, .progress = {}});
  ASSERT_EQ(r.guesses.size(), 1u) << "it needs no simulation";
  EXPECT_TRUE(r.guesses[0].fits_low);
  EXPECT_FALSE(r.guesses[0].fits_high);
  EXPECT_TRUE(r.fits_fastest);
  EXPECT_FALSE(r.fits_slowest);
  EXPECT_EQ(r.slowest, r.step);
  EXPECT_EQ(machine_at(RangeEnd::kWorse, spec, all, r).hbm_of_jobs(), 80);
  EXPECT_EQ(machine_at(RangeEnd::kBetter, spec, all, r).hbm_of_jobs(), 95);
  EXPECT_EQ(with_least_room(spec, all).hbm_of_jobs(), 80);
}

TEST(GuessEffects, OfASlowDeviceAreThoseOfItsStep) {
  SimOptions options;
  options.slow = {{0, 2.0}};
  const StepRange r = range_of_two_products({}, options);
  EXPECT_EQ(r.step, Nanos(3200));
  EXPECT_EQ(r.guesses[0].at_low, Nanos(6400));
}

}  // namespace
}  // namespace hyperrun::testing
