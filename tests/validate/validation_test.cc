// Tests of validation: extrapolation of runs, summaries of errors, and fits.
#include "runtime/validate/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/error.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/validate/fit_to_runs.h"
#include "runtime/validate/run_model.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PublishedRun small_run(std::int32_t tensor, std::int32_t data, std::int32_t pipeline,
                       std::int32_t micro_batches) {
  PublishedRun r;
  r.set = "small";
  r.hidden = 256, r.heads = 4, r.layers = 4, r.sequence = 128;
  r.tensor = tensor, r.data = data, r.pipeline = pipeline;
  r.devices = tensor * data * pipeline;
  r.micro_batch = 1, r.batch = micro_batches * data;
  r.milliseconds = 1;
  return r;
}

// The extrapolated step equals the whole one, except for rounding and the pipeline's first and last
// micro-batches. (With models so small that the device only waits for its feeder, all stages take turns, and
// it may be off by 2 %.)
TEST(RunModel, GoesOnAsTheWholeStep) {
  const Machine machine = load_profile("a100_megatron", "");
  for (PublishedRun run : {small_run(2, 1, 1, 32), small_run(1, 2, 2, 32), small_run(1, 1, 4, 32)}) {
    run.hidden = 1024, run.heads = 16, run.sequence = 1024;
    const double whole = RunModel::whole(run).milliseconds(machine);
    EXPECT_NEAR(RunModel(run).milliseconds(machine) / whole, 1, 0.004) << run.pipeline;
  }
}

TEST(RunModel, OfFewMicroBatchesIsWhole) {
  const Machine machine = load_profile("a100_megatron", "");
  const PublishedRun run = small_run(1, 1, 2, 4);
  EXPECT_EQ(RunModel(run).milliseconds(machine), RunModel::whole(run).milliseconds(machine));
}

TEST(RunModel, MustFit) {
  PublishedRun run = small_run(1, 1, 1, 1);
  run.hidden = 49152, run.heads = 384, run.layers = 8;
  EXPECT_THROW(RunModel(run).milliseconds(load_profile("a100_megatron", "")), Error);
}

TEST(Validation, SumsUpWhatCalibratesAndWhatIsJudgedApart) {
  std::vector<ValidatedRun> runs;
  for (const double simulated : {1.1, 0.8, 1.3, 1.0, 2.0}) {
    runs.push_back({small_run(1, 1, 1, 1), simulated});
    runs.back().run.calibrates = simulated == 2.0;
  }
  const auto s = summaries(runs);
  ASSERT_EQ(s.size(), 2U);
  EXPECT_EQ(s[0].calibrates, true);
  EXPECT_EQ(s[0].runs, 1U);
  EXPECT_NEAR(s[0].mean, 1.0, 1e-12);
  EXPECT_EQ(s[1].runs, 4U);
  EXPECT_NEAR(s[1].mean, (0.1 + 0.2 + 0.3 + 0) / 4, 1e-12);
  EXPECT_NEAR(s[1].bias, (0.1 - 0.2 + 0.3 + 0) / 4, 1e-12);
  EXPECT_NEAR(s[1].median, (0.1 + 0.2) / 2, 1e-12);
  EXPECT_NEAR(s[1].largest, 0.3, 1e-12);
}

TEST(Validation, IsToldInThreeForms) {
  std::vector<ValidatedRun> runs{{small_run(1, 2, 1, 1), 1.25}};
  runs[0].run.place = "a.csv:2";
  EXPECT_THAT(to_text(runs, true), HasSubstr("+25.0%"));
  EXPECT_THAT(to_csv(runs), HasSubstr("a.csv:2,small,judged,2,256,4,1,1,2,1,1,1.000000,1.250000"));
  EXPECT_THAT(to_json(runs, "a100"), HasSubstr("\"simulated_ms\": 1.25"));
  EXPECT_THAT(to_text(runs, true), Not(HasSubstr("peak of memory")));
  runs[0].run.gibibytes = 10, runs[0].simulated_gibibytes = 9;
  EXPECT_THAT(to_text(runs, false), HasSubstr("peak of memory"));
  EXPECT_THAT(to_text(runs, true), HasSubstr("-10.0%"));
  EXPECT_THAT(to_json(runs, "a100"), HasSubstr("\"simulated_gib\": 9"));
}

// A fit to steps of a known machine finds its figures again.
TEST(MachineFit, FindsTheMachineThatWasMeasured) {
  const Machine expected = load_profile("a100_megatron", "");
  Machine truth = expected;
  const auto unknowns = machine_unknowns();
  for (const MachineUnknown& u : unknowns) u.of(truth).value = u.unknown.expected;
  truth.feeder.forward.value = 100e3;
  truth.products.ceiling.value = 0.75;
  std::vector<PublishedRun> runs;
  for (const auto& [t, d, p] : {std::array{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {4, 1, 2}, {2, 2, 2}})
    for (const std::int32_t hidden : {256, 4096}) {
      PublishedRun r = small_run(t, d, p, 2);
      r.hidden = hidden, r.heads = 16;
      r.calibrates = true;
      r.milliseconds = RunModel(r).milliseconds(truth);
      runs.push_back(r);
    }
  const FittedMachine fit = fit_to_runs(expected, runs, [](int, double) {});
  EXPECT_NEAR(fit.machine.feeder.forward.value, 100e3, 5e3);
  for (const PublishedRun& r : runs)
    EXPECT_NEAR(RunModel(r).milliseconds(fit.machine) / r.milliseconds, 1, 0.02) << r.place;
}

}  // namespace
}  // namespace hyperrun
