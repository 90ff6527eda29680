// The order of a training: the invocations that the driver issues, and its reactions to results.
#include "runtime/run/training_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/device/state_hashes.h"
#include "runtime/rank/protocol.h"
#include "runtime/spec/stats_io.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;

// One device and four steps, with a save after every second step.
class Driven : public ::testing::Test {
 protected:
  Driven() {
    session_.job = small_job(1, 1);
    session_.job.training.steps = 4;
    session_.job.run.checkpoint_every = 2;
    session_.job.run.generate.tokens = 2;
    session_.plan = compile(session_.job).plan;
    session_.prompt = {5, 6, 7};
    recorder_.emplace(session_.job, session_.plan,
                      RecorderOutputs{.directory = &directory_, .trace = {}, .quiet = true});
    driver_.emplace(session_, *recorder_);
    driver_->on_ready({{.rank = 0, .host = "a"}});
  }

  static std::string title(const Session& session, const tasks::Invocation& i) {
    if (i.program == kSaveProgram)
      return "save " + std::to_string(i.step) + (i.scalars.contains(kBeside) ? " beside" : "");
    if (i.program == kCopyProgram) return "copy " + std::to_string(i.step);
    if (i.program == kCompareProgram) return "compare " + std::to_string(i.step);
    const std::string& name = session.plan.roles[0].programs[static_cast<std::size_t>(i.program)].name;
    return name == "train" ? "train " + std::to_string(i.step) : name;
  }

  // All invocations that the driver issues before it waits for results.
  std::vector<std::string> issued() {
    std::vector<std::string> titles;
    while (const auto i = next()) titles.push_back(title(session_, *i));
    return titles;
  }

  std::optional<tasks::Invocation> next() {
    std::optional<tasks::Invocation> i = driver_->next_within(dispatcher_);
    if (i) out_.push_back(*i);
    return i;
  }

  // Completes the oldest pending invocation with these statistics.
  void done(const InvocationStats& stats, std::map<std::string, double> outputs = {}) {
    const tasks::Invocation oldest = out_.front();
    out_.erase(out_.begin());
    driver_->on_done(oldest, std::vector<tasks::InvocationDone>{
                                 {oldest.id, std::move(outputs), to_bytes(stats, 0, false)}});
  }

  // Completes the oldest pending invocation, a comparison.
  void compared() {
    const tasks::Invocation oldest = out_.front();
    out_.erase(out_.begin());
    const std::vector<std::uint64_t> hashes(session_.plan.roles[0].state.size());
    tasks::InvocationDone result{.id = oldest.id, .outputs = {}, .report = {}};
    result.data = hashes_to_bytes(hashes);
    driver_->on_done(oldest, {&result, 1});
  }

  // Completes the oldest pending invocation, a training step, with this loss.
  void done(double loss) {
    InvocationStats stats;
    stats.begin = 1000 * out_.front().step;
    stats.end = stats.begin + 1000;
    done(stats, {{"loss", loss}, {"grad_norm", 1}});
  }

  TemporaryDirectory tmp_;
  RunDirectory directory_ = RunDirectory::create(tmp_ / "run");
  Session session_;
  std::optional<TrainingRecorder> recorder_;
  std::optional<TrainingDriver> driver_;
  tasks::DeviceGroups groups_{1};
  tasks::Dispatcher dispatcher_{groups_, tasks::kWindow};
  std::vector<tasks::Invocation> out_;
};

TEST_F(Driven, StepsGoOutAheadAndASaveWaitsForTheirResults) {
  EXPECT_THAT(issued(), ElementsAre("init", "train 0", "train 1"));
  done(InvocationStats{});
  done(5);
  EXPECT_THAT(issued(), ElementsAre());
  done(4);
  EXPECT_THAT(issued(), ElementsAre("save 2 beside", "train 2", "train 3"));
  done(InvocationStats{});
  done(3);
  done(2);
  EXPECT_THAT(issued(), ElementsAre("save 4", "prefill"));
}

// Steps between checkpoints are copied, and a copy waits as a save does.
TEST_F(Driven, StepsBetweenCheckpointsAreCopied) {
  session_.job.run.copy_every = 1;
  driver_.emplace(session_, *recorder_);
  driver_->on_ready({{.rank = 0, .host = "a"}});
  EXPECT_THAT(issued(), ElementsAre("init", "train 0"));
  done(InvocationStats{});
  EXPECT_THAT(issued(), ElementsAre());
  done(5);
  EXPECT_THAT(issued(), ElementsAre("copy 1", "train 1"));
  done(InvocationStats{});
  done(4);
  EXPECT_THAT(issued(), ElementsAre("save 2 beside", "train 2"));
  done(InvocationStats{});
  done(3);
  EXPECT_THAT(issued(), ElementsAre("copy 3", "train 3"));
  done(InvocationStats{});
  done(2);
  EXPECT_THAT(issued(), ElementsAre("save 4", "prefill"));
}

// The high water of an arena is that of the whole run. If most of the state is evicted in a step, "init" may
// need the most HBM.
TEST_F(Driven, WhatInitTakesIsInTheReport) {
  Role& role = session_.plan.roles[0];
  Program& init = role.programs[session_.plan.program_index("init")];
  init.peak[0] = role.peak() + Bytes(64);
  EXPECT_THAT(issued(), ElementsAre("init", "train 0", "train 1"));
  InvocationStats stats;
  stats.high_water[0] = init.peak[0];
  done(stats);
  done(5);
  const TierUse& hbm = recorder_->report().devices[0].tiers.front();
  EXPECT_EQ(hbm.executed_peak, init.peak[0]);
  EXPECT_EQ(hbm.planned_peak, init.peak[0]);
}

// A diverged step is an error that names the step, and is never saved.
TEST_F(Driven, ADivergedStepIsNotSaved) {
  EXPECT_THAT(issued(), ElementsAre("init", "train 0", "train 1"));
  done(InvocationStats{});
  done(5);
  try {
    done(std::numeric_limits<double>::quiet_NaN());
    ADD_FAILURE() << "it goes on";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNotFinite);
    EXPECT_EQ(e.place(), "step 2");
    EXPECT_FALSE(e.remedy().empty());
  }
  EXPECT_THAT(issued(), ElementsAre());
}

// A save waits for a comparison of what it is going to save, and is compared again.
TEST_F(Driven, StateIsComparedEachSoManyStepsAndAroundSaves) {
  session_.job.run.integrity.every = 3;
  driver_.emplace(session_, *recorder_);
  driver_->on_ready({{.rank = 0, .host = "a"}});
  EXPECT_THAT(issued(), ElementsAre("init", "train 0", "train 1", "compare 2"));
  done(InvocationStats{});
  done(5);
  done(4);
  EXPECT_THAT(issued(), ElementsAre()) << "the save waits for the comparison";
  compared();
  EXPECT_THAT(issued(),
              ElementsAre("save 2 beside", "compare 2", "train 2", "compare 3", "train 3", "compare 4"));
}

}  // namespace
}  // namespace hyperrun::testing
