// Runs that go on after a divergence or a flipped bit end like runs without.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Integrity : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(workspace_.nothing_left()); }

  // The losses of a run by step: of a step that was repeated, the last one.
  std::vector<double> last_losses(std::string_view directory) const {
    std::map<std::int64_t, double> losses;
    for (const StepMetrics& m : read_metrics(workspace_ / directory / "metrics.jsonl"))
      losses[m.step] = m.loss;
    std::vector<double> list;
    for (const auto& [step, loss] : losses) list.push_back(loss);
    return list;
  }
  std::string state(std::string_view directory, const std::string& step) const {
    const fs::path checkpoint = workspace_ / directory / "checkpoints" / step;
    return content(checkpoint / "model.safetensors") + content(checkpoint / "optimizer.safetensors");
  }
  nlohmann::json restarts(std::string_view directory) const {
    return nlohmann::json::parse(content(workspace_ / directory / "manifest.json")).at("restarts");
  }
  // Runs the small job with these fields of `run`, in a directory of this name.
  Finished run(const std::string& fields, const std::string& name, const std::vector<Edit>& edits = {},
               const std::vector<std::string>& options = {}) const {
    std::vector<Edit> all = edits;
    all.push_back({"directory: \"out\" restarts: 0", "directory: \"" + name + "\" " + fields});
    return workspace_.run_on_job("run", edited(kJob, all), options);
  }

  Workspace workspace_;
};

const std::vector<Edit> kFour{{"devices: 2", "devices: 4"}, {"size: 2 } presets", "size: 4 } presets"}};

TEST_F(Integrity, AFlippedBitIsFoundWithinTheIntervalAndTheRunGoesOnFromBefore) {
  ASSERT_THAT(run("checkpoint_every: 2", "sound", kFour), Succeeded());
  const Finished f =
      run("checkpoint_every: 3 integrity { every: 2 } chaos { fault { kind: \"flip\" device: 2 step: 4 } }",
          "flipped", kFour);
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("device 2 (host "), HasSubstr("): corrupt: "),
                           HasSubstr("found after step 4; after step 3 all were equal"),
                           HasSubstr("restart 1 of 3"), Not(HasSubstr("removed "))));
  const nlohmann::json told = restarts("flipped");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0].at("error").get<std::string>(), HasSubstr("device 2 (host "));
  // The checkpoint after step 3 is written beside step 4, so it may not be there yet.
  EXPECT_THAT(told[0].at("from_step").get<int>(), AnyOf(0, 3));
  EXPECT_EQ(last_losses("flipped"), last_losses("sound"));
  EXPECT_EQ(state("flipped", "step-000006"), state("sound", "step-000006"));
}

// The bit flips between the comparison before the save and the copying of what is saved.
TEST_F(Integrity, ACheckpointWithAFlippedBitIsRemoved) {
  ASSERT_THAT(run("checkpoint_every: 2", "sound", kFour), Succeeded());
  const Finished f =
      run("checkpoint_every: 2 integrity { every: 100 } "
          "chaos { fault { kind: \"flip\" device: 0 step: 6 saving: true } }",
          "flipped", kFour);
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("removed "), HasSubstr("step-000006: it may hold the corrupted state"),
                           HasSubstr("from the checkpoint after step 4")));
  EXPECT_EQ(last_losses("flipped"), last_losses("sound"));
  EXPECT_EQ(state("flipped", "step-000006"), state("sound", "step-000006"));
}

TEST_F(Integrity, WithoutRestartsACorruptionEndsTheRun) {
  const Finished f = run(
      "restarts: 0 integrity { every: 2 } chaos { fault { kind: \"flip\" device: 1 step: 3 } }", "flipped");
  EXPECT_EQ(f.status, 12) << f;
  EXPECT_THAT(f.err,
              AllOf(HasSubstr("devices 0 (host "), HasSubstr(" and 1 (host "), HasSubstr("error[corrupt]"),
                    HasSubstr("found after step 4; after step 2 all were equal"), HasSubstr("\n  fix: ")));
}

TEST_F(Integrity, ChecksumsChangeNoResult) {
  ASSERT_THAT(run("", "plain"), Succeeded());
  ASSERT_THAT(run("integrity { checksums: true }", "summed"), Succeeded());
  EXPECT_EQ(last_losses("summed"), last_losses("plain"));
  EXPECT_EQ(state("summed", "step-000006"), state("plain", "step-000006"));
}

TEST_F(Integrity, NothingToCompareIsToldBeforehand) {
  const Finished f =
      workspace_.run_on_job("check", edited(kJob, {{"presets: \"dp\"", "presets: [\"dp\", \"zero3\"]"},
                                                   {"directory: \"out\"", "integrity { every: 2 }"}}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("warning: nothing is compared"),
                           HasSubstr("in run, replacing integrity: integrity { checksums: true }")));
  const Finished two =
      workspace_.run_on_job("check", edited(kJob, {{"directory: \"out\"", "integrity { every: 2 }"}}));
  EXPECT_EQ(two.err, "");
}

// A learning rate of almost nothing leaves the losses to the samples: one of them is the highest.
class Divergence : public Integrity {
 protected:
  void SetUp() override {
    ASSERT_THAT(run("checkpoint_every: 1", "sound", kSteps), Succeeded());
    const std::vector<double> losses = last_losses("sound");
    double sum = losses[0], most = 0;
    for (std::size_t i = 1; i < losses.size(); ++i) {  // fewer than 16, so all before are in the mean
      const double ratio = losses[i] / (sum / static_cast<double>(i));
      if (ratio > most) most = ratio, step_ = static_cast<std::int64_t>(i) + 1;
      sum += losses[i];
    }
    ASSERT_GT(most, 1.0);
    jump_ = "divergence_jump: " + std::to_string(1 + (most - 1) * 0.999) + " ";
  }

  const std::vector<Edit> kSteps{{"steps: 6", "steps: 12"}, {"lr: 3e-3", "lr: 1e-9"}};
  std::string jump_;
  std::int64_t step_ = 0;  // the one whose loss jumps
};

TEST_F(Divergence, StopsTheRun) {
  const Finished f = run("checkpoint_every: 1 " + jump_, "stopped", kSteps);
  EXPECT_EQ(f.status, 10) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("step " + std::to_string(step_) + ": error[not-finite]: the loss is "),
                           HasSubstr(" times the mean of the last ")));
  EXPECT_EQ(restarts("stopped").size(), 0U);
}

TEST_F(Divergence, SkipsTheSamples) {
  const Finished f =
      run("checkpoint_every: 1 restarts: 20 on_divergence: \"skip\" " + jump_, "skipped", kSteps);
  ASSERT_THAT(f, Succeeded()) << f;
  const nlohmann::json told = restarts("skipped");
  ASSERT_GE(told.size(), 1U);
  const std::int64_t from = step_ - 1, batch = 8;
  EXPECT_EQ(told[0].at("after_step"), step_);
  EXPECT_EQ(told[0].at("from_step"), from);
  EXPECT_EQ(told[0].at("left_out").at("first_sample"), from * batch);
  EXPECT_EQ(told[0].at("left_out").at("samples"), (step_ - from) * batch);
  EXPECT_THAT(f.err, HasSubstr("without samples " + std::to_string(from * batch + 1) + " to " +
                               std::to_string(step_ * batch)));

  // The undisturbed run starts at the same checkpoint, and at the sample that the last restart began with.
  ASSERT_EQ(told.size(), 1U);
  const fs::path checkpoint = workspace_ / "from";
  fs::copy(workspace_ / "sound" / "checkpoints" / fmt::format("step-{:06}", from), checkpoint,
           fs::copy_options::recursive);
  nlohmann::json trainer = nlohmann::json::parse(content(checkpoint / "hyperrun_state.json"));
  ASSERT_EQ(trainer.at("next_sample"), from * batch);
  trainer["next_sample"] = step_ * batch;
  std::ofstream(checkpoint / "hyperrun_state.json") << trainer.dump();
  ASSERT_THAT(run("checkpoint_every: 1", "resumed", kSteps, {"--resume", checkpoint.string()}), Succeeded());
  const std::vector<double> skipped = last_losses("skipped"), resumed = last_losses("resumed");
  EXPECT_EQ(std::vector<double>(skipped.begin() + from, skipped.end()), resumed);
  EXPECT_EQ(state("skipped", "step-000012"), state("resumed", "step-000012"));
}

}  // namespace
}  // namespace hyperrun::testing
