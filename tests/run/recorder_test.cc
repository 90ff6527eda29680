// The files that a training writes, from made-up statistics. Every number is compared with arithmetic by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "proto/trace.pb.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/run/device_use.h"
#include "runtime/run/training_recorder.h"
#include "tests/launcher/process.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kStart = 1'769'903'999'000'000'000;

InvocationStats stats_of(const Plan& plan, std::int64_t begin, std::int64_t end, std::int64_t exposed) {
  InvocationStats s;
  s.begin = kStart + begin;
  s.end = kStart + end;
  s.exposed = Nanos(exposed);
  s.high_water = {Bytes(begin + 1000)};
  s.spans.assign(plan.roles[0].program("train").instrs.size(), {s.begin, s.begin});
  s.traffic = {{{"all-reduce", "dp"}, 3, Bytes(500)}};
  s.under_way = {{Nanos(end - begin), Nanos(exposed)}};  // the collective lasts the whole step
  s.live[0] = {{s.begin, 4096}, {s.begin + 1, 8192}, {s.end, 4096}};
  return s;
}

RecorderOutputs outputs_in(const RunDirectory& directory) {
  return {.directory = &directory, .trace = directory.file(kTraceFile), .quiet = true};
}

// Two devices and two steps: from 0 to 1100, and from 1150 to 3200. The second step is traced.
class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.run.trace_steps = 1;
    plan_ = compile(job_).plan;
    TrainingRecorder recorder(job_, plan_, outputs_in(directory_));
    recorder.begin({{.rank = 0, .host = "a"}, {.rank = 1, .host = "b"}});
    recorder.step(0, 5, 1, std::vector{stats_of(plan_, 0, 1000, 250), stats_of(plan_, 100, 1100, 500)},
                  false);
    recorder.step(1, 4, 2, std::vector{stats_of(plan_, 1200, 3200, 0), stats_of(plan_, 1150, 3100, 1950)},
                  true);
    recorder.finish();
    metrics_ = read_metrics(directory_.file(kMetricsFile));
    report_ = read_report(directory_.file(kReportFile));
  }

  static constexpr std::int64_t kTokens = 8 * 32;  // batch and sequence of the small job

  TemporaryDirectory tmp_;
  RunDirectory directory_ = RunDirectory::create(tmp_ / "run");
  Job job_ = small_job(2, 1);
  Plan plan_;
  std::vector<StepMetrics> metrics_;
  RunReport report_;
};

// A step lasts from the end of the step before to the end of its slowest device.
TEST_F(Recorded, StepTimesAndTokensPerSecond) {
  ASSERT_EQ(metrics_.size(), 2U);
  EXPECT_EQ(metrics_[0].step_time, Nanos(1100));
  EXPECT_EQ(metrics_[1].step_time, Nanos(2100));
  EXPECT_EQ(metrics_[0].time, Nanos(kStart + 1100));
  EXPECT_EQ(metrics_[1].time, Nanos(kStart + 3200));
  for (const StepMetrics& m : metrics_) {
    EXPECT_EQ(m.tokens, kTokens);
    EXPECT_DOUBLE_EQ(m.tokens_per_second, kTokens / (static_cast<double>(m.step_time.value) * 1e-9));
  }
  EXPECT_EQ(report_.time, Nanos(3200));
  EXPECT_EQ(report_.tokens, 2 * kTokens);
}

// Metrics have the mean share over the devices, the report has the time of each device.
TEST_F(Recorded, ExposedCommunication) {
  EXPECT_DOUBLE_EQ(metrics_[0].exposed_communication, (0.25 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(metrics_[1].exposed_communication, (0.0 + 1.0) / 2);
  ASSERT_EQ(report_.devices.size(), 2U);
  EXPECT_EQ(report_.devices[0].exposed_communication, Nanos(250));
  EXPECT_EQ(report_.devices[1].exposed_communication, Nanos(2450));
  EXPECT_EQ(report_.devices[0].time, Nanos(3000));
  EXPECT_EQ(report_.devices[1].time, Nanos(2950));
}

TEST_F(Recorded, PeaksAreTheLargestAndTrafficAddsUp) {
  EXPECT_EQ(metrics_[0].hbm_peak, Bytes(1100));
  EXPECT_EQ(metrics_[1].hbm_peak, Bytes(2200));
  EXPECT_EQ(report_.devices[0].tiers.at(0).executed_peak, Bytes(2200));
  EXPECT_EQ(report_.devices[1].tiers.at(0).executed_peak, Bytes(2150));
  for (const DeviceReport& d : report_.devices)
    EXPECT_THAT(d.collectives, ElementsAre(CollectiveUse{"all-reduce", "dp", 6, Bytes(1000), d.time,
                                                         d.exposed_communication}));
}

// The categories are those of the fullest moment of all steps, even a category that the plan does not have
// then.
TEST_F(Recorded, CategoriesAreThoseOfTheFullestMoment) {
  DeviceReport device = planned_use(job_, plan_.roles[0]);
  device.streams.resize(kStreams);
  TierUse& hbm = device.tiers.front();
  const auto at = [](Category c) { return static_cast<std::size_t>(c); };
  std::erase_if(hbm.categories, [](const CategoryUse& u) { return u.category == "communication"; });
  const auto step = [&](std::int64_t weights, std::int64_t communication) {
    InvocationStats s = stats_of(plan_, 0, 1000, 0);
    s.live_at_peak[at(Category::kWeights)] = Bytes(weights);
    s.live_at_peak[at(Category::kCommunication)] = Bytes(communication);
    s.live_peak = Bytes(weights + communication);
    add_steps(s, device, 1);
  };
  step(100, 0);
  step(100, 7);
  step(101, 5);
  for (const CategoryUse& use : hbm.categories)
    EXPECT_EQ(use.executed, Bytes(use.category == "weights"         ? 100
                                  : use.category == "communication" ? 7
                                                                    : 0))
        << use.category;
  const auto found = std::ranges::find(hbm.categories, "communication", &CategoryUse::category);
  ASSERT_NE(found, hbm.categories.end());
  EXPECT_EQ(found->planned, Bytes(0));
  // The order is that of the enum, whichever category came first.
  EXPECT_LT(found, std::ranges::find(hbm.categories, "data", &CategoryUse::category));
}

// A generation that needs more memory than a step: planned and executed memory cover only Programs that have
// run.
TEST_F(Recorded, MemoryIsThatOfTheProgramsThatRan) {
  Job job = small_job(1, 1);
  job.run.generate.tokens = 2;
  job.inference.context = 16384;
  const Plan plan = compile(job).plan;
  const Role& role = plan.roles[0];
  const Program &train = role.program("train"), &prefill = role.program("prefill");
  ASSERT_GT(prefill.peak[0], train.peak[0]);
  const auto stats_of = [](const Program& program) {
    InvocationStats s;
    s.high_water = program.peak;
    s.live_peak = peak_use(program).bytes;
    s.live_at_peak = peak_use(program).by_category;
    return s;
  };
  const TemporaryDirectory tmp;
  const RunDirectory directory = RunDirectory::create(tmp / "other");
  TrainingRecorder recorder(job, plan, outputs_in(directory));
  recorder.begin({{.rank = 0, .host = "a"}});
  const TierUse& hbm = recorder.report().devices[0].tiers.front();
  EXPECT_EQ(hbm.planned_peak, role.peak());
  const auto expect_as_planned = [&](const Program& fullest) {
    EXPECT_EQ(hbm.planned_peak, fullest.peak[0]);
    EXPECT_EQ(hbm.executed_peak, fullest.peak[0]);
    Bytes sum{};
    for (const CategoryUse& use : hbm.categories) {
      EXPECT_EQ(use.planned, use.executed) << use.category;
      sum += use.planned;
    }
    EXPECT_EQ(sum, peak_use(fullest).bytes);
    EXPECT_THAT(totals(recorder.report()).off_plan, ::testing::IsEmpty());
  };
  recorder.step(0, 5, 1, std::vector{stats_of(train)}, false);
  expect_as_planned(train);
  recorder.ran("prefill", std::vector{stats_of(prefill)});
  expect_as_planned(prefill);
}

TEST_F(Recorded, StepsThatAreAlikeCountAsOften) {
  const InvocationStats step = stats_of(plan_, 0, 1000, 250);
  DeviceReport at_once = planned_use(job_, plan_.roles[0]), one_by_one = at_once;
  for (std::size_t s = 0; s < kStreams; ++s)
    for (DeviceReport* d : {&at_once, &one_by_one})
      d->streams.push_back({std::string(name(static_cast<StreamKind>(s))), {}});
  add_steps(step, at_once, 3);
  for (int i = 0; i < 3; ++i) add_steps(step, one_by_one, 1);
  EXPECT_EQ(at_once, one_by_one);
  EXPECT_EQ(at_once.exposed_communication, Nanos(750));
}

// A flow of the trace joins instructions of one step, and never of two steps.
TEST_F(Recorded, FlowsAreOfOneStep) {
  const auto flows_of = [&](int steps) {
    TemporaryDirectory tmp;
    const RunDirectory directory = RunDirectory::create(tmp / "run");
    job_.run.trace_steps = steps;
    TrainingRecorder recorder(job_, plan_, outputs_in(directory));
    recorder.begin({{.rank = 0, .host = "a"}, {.rank = 1, .host = "b"}});
    for (int s = 0; s < steps; ++s)
      recorder.step(s, 5, 1,
                    std::vector{stats_of(plan_, 2000 * s, 2000 * s + 1000, 0),
                                stats_of(plan_, 2000 * s, 2000 * s + 1000, 0)},
                    true);
    recorder.finish();
    proto::trace::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(content(directory.file(kTraceFile))));
    std::set<std::uint64_t> ids;
    for (const auto& p : trace.packet())
      for (const std::uint64_t id : p.track_event().flow_ids()) ids.insert(id);
    return ids.size();
  };
  EXPECT_GT(flows_of(1), 0U);
  EXPECT_EQ(flows_of(2), 2 * flows_of(1));
}

// The counter covers the traced step alone. Its times count from the start of the first step.
TEST_F(Recorded, TheTraceCountsHbm) {
  proto::trace::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(content(directory_.file(kTraceFile))));
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::int64_t>>> counters;
  for (const auto& p : trace.packet())
    if (p.has_track_event() && p.track_event().type() == proto::trace::TrackEvent::TYPE_COUNTER)
      counters[p.track_event().track_uuid()].emplace_back(p.timestamp(), p.track_event().counter_value());
  std::vector<std::vector<std::pair<std::uint64_t, std::int64_t>>> values;
  for (const auto& [track, seen] : counters) values.push_back(seen);
  using Values = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  EXPECT_THAT(values, UnorderedElementsAre(Values{{1200, 4096}, {1201, 8192}, {3200, 4096}},
                                           Values{{1150, 4096}, {1151, 8192}, {3100, 4096}}));
}

}  // namespace
}  // namespace hyperrun::testing
