// Runs that lose devices go on by themselves, and end like undisturbed ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string saves() { return edited(kJob, {{"restarts: 0", "checkpoint_every: 2"}}); }

// The job with these words in its block `run`.
std::string with(const std::string& words) {
  return edited(saves(), {{"checkpoint_every: 2", "checkpoint_every: 2 heartbeat: \"500 ms\" " + words}});
}

std::string fault(const std::string& words) { return with("chaos { fault { " + words + " } }"); }

class Restart : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = std::make_unique<Workspace>();
    ASSERT_THAT(workspace_->run(hyperrun({workspace_->job(saves()), "--run-dir", "whole"})), Succeeded());
  }
  static void TearDownTestSuite() { workspace_.reset(); }
  void TearDown() override { EXPECT_TRUE(workspace_->nothing_left()); }

  static fs::path at(std::string_view name) { return *workspace_ / name; }
  static Finished run(const std::string& job) {
    fs::remove_all(at("out"));
    return workspace_->run(hyperrun({workspace_->job(job), "--run-dir", "out"}));
  }
  static nlohmann::json restarts() {
    return nlohmann::json::parse(content(at("out/manifest.json"))).at("restarts");
  }
  static void expect_as_undisturbed() {
    EXPECT_EQ(losses(at("out")), losses(at("whole")));
    for (const std::string file : {"step-000002/model.safetensors", "step-000006/model.safetensors",
                                   "step-000006/optimizer.safetensors"})
      EXPECT_EQ(content(at("out/checkpoints") / file), content(at("whole/checkpoints") / file)) << file;
  }

  static inline std::unique_ptr<Workspace> workspace_;
};

class Faults : public Restart, public ::testing::WithParamInterface<std::string> {};

TEST_P(Faults, EndAsUndisturbed) {
  const Finished f = run(fault(GetParam()));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("restart 1 of 3")) << f;
  EXPECT_THAT(f.out, HasSubstr("restarted after step"));
  EXPECT_EQ(restarts().size(), 1U);
  EXPECT_GT(restarts()[0].at("seconds"), 0);
  expect_as_undisturbed();
}

INSTANTIATE_TEST_SUITE_P(All, Faults,
                         ::testing::Values("kind: \"kill\" step: 4", "kind: \"kill\" device: 1 step: 1",
                                           "kind: \"stop\" device: 1 step: 5", "kind: \"cut\" step: 6",
                                           "kind: \"kill\" step: 4 saving: true",
                                           "kind: \"kill\" device: 1 step: 0", "kind: \"cut\" step: 0",
                                           "kind: \"stop\" step: 0"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST_F(Restart, ASlowDeviceIsNoLoss) {
  const Finished f = run(fault("kind: \"slow\" step: 3 seconds: 0.7"));
  ASSERT_THAT(f, Succeeded());
  EXPECT_EQ(restarts().size(), 0U);
  expect_as_undisturbed();
}

TEST_F(Restart, AFullDiskCostsACheckpoint) {
  const Finished f = run(fault("kind: \"full_disk\" step: 4 saving: true"));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("step-000004: not saved, the run goes on: no space is left"));
  EXPECT_FALSE(fs::exists(at("out/checkpoints/step-000004")));
  expect_as_undisturbed();
}

TEST_F(Restart, TheSameSeedBringsTheSameFaults) {
  const std::string job = with("chaos { seed: 3 faults: 3 kinds: [\"kill\", \"cut\"] }");
  ASSERT_THAT(run(job), Succeeded());
  const nlohmann::json first = restarts();
  EXPECT_GE(first.size(), 1U);
  expect_as_undisturbed();
  ASSERT_THAT(run(job), Succeeded());
  EXPECT_EQ(restarts().size(), first.size());
}

// Three faults before the first checkpoint, and two restarts.
TEST_F(Restart, EndsAfterSoManyInARowWithoutANewCheckpoint) {
  const Finished f = run(with("restarts: 2 chaos { fault { step: 1 } fault { step: 1 } fault { step: 1 } }"));
  EXPECT_NE(f.status, 0) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("restart 2 of 2"), HasSubstr("error[device-lost]"),
                           HasSubstr("2 restarts without a new checkpoint")));
}

TEST_F(Restart, CheckpointsBetweenCountFromOneAgain) {
  ASSERT_THAT(run(with("restarts: 1 chaos { fault { step: 3 } fault { step: 5 } }")), Succeeded());
  EXPECT_EQ(restarts().size(), 2U);
  expect_as_undisturbed();
}

TEST_F(Restart, NoneIfNoneIsWanted) {
  EXPECT_NE(run(with("restarts: 0 chaos { fault { step: 3 } }")).status, 0);
  fs::remove_all(at("out"));
  const std::string job = workspace_->job(fault("step: 3"));
  EXPECT_NE(workspace_->run(hyperrun({job, "--run-dir", "out", "--restarts", "0"})).status, 0);
}

TEST_F(Restart, ASpareTakesThePlaceOfADeviceThatIsGone) {
  const Finished f = run(edited(fault("step: 3 for_good: true"), {{"devices: 2", "devices: 2 spares: 1"}}));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, Not(HasSubstr("the run goes on with")));
  expect_as_undisturbed();
}

// Sums are in another order on one device, so losses differ by round-off.
TEST_F(Restart, GoesOnWithTheDevicesThatAreLeft) {
  const Finished f = run(fault("step: 3 for_good: true"));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("1 of 2 devices are there; the run goes on with 1")) << f;
  EXPECT_THAT(losses(at("out")), RelativelyNear(losses(at("whole")), 1e-5));
  EXPECT_EQ(nlohmann::json::parse(content(at("out/manifest.json"))).at("devices"), 1);
}

TEST_F(Restart, AndWithAllWhenTheyAreBack) {
  const Finished f = run(fault("step: 3 for_good: true back: 4"));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("2 of 2 devices are there; the run goes on with 2")) << f;
  EXPECT_THAT(losses(at("out")), RelativelyNear(losses(at("whole")), 1e-5));
  EXPECT_EQ(nlohmann::json::parse(content(at("out/manifest.json"))).at("devices"), 2);
  EXPECT_EQ(restarts().size(), 1U) << "the return of a device is no loss";
}

TEST_F(Restart, WithoutElasticityItEndsWhenDevicesAreGone) {
  const Finished f = run(with("elastic: false chaos { fault { step: 3 for_good: true } }"));
  EXPECT_NE(f.status, 0);
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[too-few-ranks]"), HasSubstr("1 of 2 devices are gone for good")));
}

TEST_F(Restart, EndsIfNoDeviceIsLeft) {
  const Finished f = run(edited(
      fault("step: 3 for_good: true"),
      {{"devices: 2", "devices: 1"}, {R"(mesh { name: "dp" size: 2 })", R"(mesh { name: "dp" size: 1 })"}}));
  EXPECT_EQ(f.status, 5) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[too-few-ranks]: none of 1 devices is left"),
                           HasSubstr("  fix: see to the hosts, and resume")));
}

// The signal comes while the devices that are left are ended: the heartbeat of the one that stands still is
// over.
TEST_F(Restart, ASignalAmidALossEndsTheRun) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(at("out"));
    const auto running = workspace_->start(
        hyperrun({workspace_->job(fault("kind: \"kill\" device: 1 step: 3")), "--run-dir", "out"}));
    ASSERT_TRUE(eventually([&] { return workspace_->device(1) != 0; }, Seconds(20))) << running->err();
    ASSERT_TRUE(eventually([&] { return workspace_->device(1) == 0; }, Seconds(20))) << running->err();
    running->signal(signal);
    const Finished f = running->wait(Seconds(10));
    EXPECT_EQ(f.status, 128 + signal) << f;
    EXPECT_THAT(f.err, HasSubstr("interrupted by signal"));
    EXPECT_EQ(nlohmann::json::parse(content(at("out/manifest.json"))).at("state"), "interrupted");
    EXPECT_TRUE(workspace_->nothing_left());
  }
}

TEST_F(Restart, PassesOverACheckpointThatCannotBeRead) {
  fs::remove_all(at("out"));
  const auto running =
      workspace_->start(hyperrun({workspace_->job(with("chaos { fault { kind: \"slow\" step: 5 seconds: 3 } "
                                                       "fault { kind: \"kill\" device: 1 step: 6 } }")),
                                  "--run-dir", "out"}));
  const fs::path last = at("out/checkpoints/step-000004/model.safetensors");
  ASSERT_TRUE(eventually([&] { return fs::exists(last); }, Seconds(20))) << running->err();
  fs::resize_file(last, fs::file_size(last) / 2);
  const Finished f = running->wait(Seconds(60));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, AllOf(HasSubstr("step-000004 cannot be read, the one before is taken: truncated"),
                           HasSubstr("from the checkpoint after step 2")));
  expect_as_undisturbed();
}

TEST_F(Restart, TellsOfFaultsThatDidNotHappen) {
  const Finished f = run(with("chaos { fault { kind: \"kill\" step: 6 } fault { kind: \"cut\" step: 6 } }"));
  ASSERT_THAT(f, Succeeded());
  const Finished none =
      run(with("chaos { fault { kind: \"slow\" step: 6 } fault { kind: \"slow\" step: 6 } }"));
  ASSERT_THAT(none, Succeeded());
  EXPECT_THAT(none.err, HasSubstr("a fault of run.chaos did not happen: slow of device 0, step 6"));
}

// A repair takes 3 s by the clock of the machine, longer than it takes to notice the loss. The slow step
// makes the run long enough for faults.
TEST_F(Restart, WaitsForTheRepairsOfDrawnFaults) {
  put_file(at("faults.textproto"),
           R"(device { mtbf: "1500 ms" repair: "3 s" lasting: 1 }
storage { bandwidth: "1 GB/s" } horizon: "2 s")");
  const Finished f =
      run(with("restarts: 20 elastic: false chaos { model: \"faults.textproto\" seed: 2 "
               "fault { kind: \"slow\" step: 4 seconds: 2 } }"));
  ASSERT_THAT(f, Succeeded());
  const auto goodput = nlohmann::json::parse(content(at("out/manifest.json"))).at("goodput");
  EXPECT_GE(goodput.at("faults"), 1) << goodput;
  EXPECT_GT(goodput.at("waiting_seconds"), 0) << goodput;
  EXPECT_LE(goodput.at("waiting_seconds"), f.time.count()) << "it is real time: " << goodput;
  expect_as_undisturbed();
}

// As an upgrade of the package does during a long run.
TEST_F(Restart, WithTheProgramThatItWasStartedWith) {
  fs::remove_all(at("out"));
  fs::copy_file(HYPERRUN_BINARY, at("program"));
  const std::string job = workspace_->job(
      edited(saves(),
             {{"steps: 6", "steps: 400"},
              {"checkpoint_every: 2", "checkpoint_every: 50 chaos { fault { device: 1 step: 300 } }"}}),
      "long.textproto");
  const auto running = workspace_->start({at("program"), job, "--run-dir", "out"});
  ASSERT_TRUE(eventually([&] { return fs::exists(at("out/checkpoints/step-000050")); }, Seconds(20)));
  fs::remove(at("program"));
  const Finished f = running->wait(Seconds(60));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("restart 1 of 3"));
}

TEST_F(Restart, AfterAProcessIsKilledFromOutside) {
  fs::remove_all(at("out"));
  const std::string job = workspace_->job(
      edited(saves(), {{"steps: 6", "steps: 400"}, {"checkpoint_every: 2", "checkpoint_every: 50"}}),
      "long.textproto");
  const auto running = workspace_->start(hyperrun({job, "--run-dir", "out"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(at("out/checkpoints/step-000050")); }, Seconds(20)));
  workspace_->kill_device(1);
  const Finished f = running->wait(Seconds(60));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.err, HasSubstr("restart 1 of 3"));
  EXPECT_EQ(losses(at("out")).size(), 400U);
}

}  // namespace
}  // namespace hyperrun::testing
