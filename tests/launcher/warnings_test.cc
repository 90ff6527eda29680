// Warnings: each command prints them, and the offered line mends the job. Besides, the smallest job that
// commands without a run accept.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/advise/pasting.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSplit = R"(mesh { name: "dp" size: 2 } presets: "dp")";

class Warnings : public ::testing::Test {
 protected:
  Finished does(const std::string& command, const std::vector<Edit>& edits,
                const std::vector<std::string>& options = {}) const {
    return workspace_.run_on_job(command, edited(kJob, edits), options);
  }

  Workspace workspace_;
};

// Expects that the offered line mends the job's only warning; returns the warning's text.
std::string expect_mended(const Workspace& workspace, const std::string& job) {
  const Finished f = workspace.run(hyperrun({"check", workspace.job(job)}));
  EXPECT_THAT(f, Succeeded()) << f;
  std::smatch line;
  EXPECT_TRUE(std::regex_search(f.err, line, std::regex("\n  fix: (?:.*:\n *)?(in .*)\n$"))) << f;
  if (line.empty()) return f.err;
  const std::string mended = pasted(job, line[1]);
  const Finished again = workspace.run(hyperrun({"check", workspace.job(mended, "mended.textproto")}));
  EXPECT_THAT(again, Succeeded()) << mended << again;
  EXPECT_EQ(again.err, "") << mended;
  return f.err;
}

TEST_F(Warnings, OfDevicesThatDoTheSameWork) {
  const std::string mesh = R"(mesh { name: "dp" size: 2 } )";
  for (const auto& [presets, line] :
       {std::pair{R"(presets: "zero3")", R"(, replacing presets: presets: ["dp", "zero3"])"},
        {"", R"(: presets: ["dp"])"}}) {
    const std::string said =
        "job.textproto:4:12: warning: the 2 devices along \"dp\" do the same work: nothing "
        "that is computed is split over this axis\n  fix: in parallel" +
        std::string(line) + "\n";
    for (const char* command : {"check", "sim", "plan", "run"}) {
      const Finished f = does(command, {{kSplit, mesh + presets}});
      ASSERT_THAT(f, Succeeded()) << f;
      EXPECT_THAT(f.err, HasSubstr(said)) << command;
      EXPECT_THAT(f.out, Not(HasSubstr("warning"))) << command;
    }
    expect_mended(workspace_, edited(kJob, {{kSplit, mesh + presets}}));
  }
}

// Rules split the batch as a preset does, for any name of the axis; axes that split it already still do.
TEST_F(Warnings, AreMendedByRulesWhereNoPresetKnowsTheAxis) {
  const std::string mesh = R"(mesh { name: "dp" size: 2 } mesh { name: "x" size: 2 } presets: "dp")";
  const std::vector<Edit> edits{{kSplit, mesh}, {"devices: 2", "devices: 4"}};
  EXPECT_THAT(expect_mended(workspace_, edited(kJob, edits)), HasSubstr("axes: [\"dp\", \"x\"]"));
}

// A refused batch is not offered: the nearest batch that can be split is offered beside it.
TEST_F(Warnings, OfferABatchThatDividesWhereThisOneDoesNot) {
  const Edit four{"devices: 2", "devices: 4"}, six{"devices: 2", "devices: 6"};
  const Edit zero{kSplit, R"(mesh { name: "dp" size: 4 } presets: ["zero1"])"};
  EXPECT_THAT(
      expect_mended(workspace_, edited(kJob, {zero, four, {"batch: 8", "batch: 6 micro_batches: 3"}})),
      HasSubstr("fix: in parallel, replacing presets: presets: [\"dp\", \"zero1\"]; "
                "in training, replacing batch: batch: 12\n"));
  const Edit foo{kSplit, R"(mesh { name: "foo" size: 3 } mesh { name: "dp" size: 2 } presets: "dp")"};
  EXPECT_THAT(expect_mended(workspace_, edited(kJob, {foo, six})),
              HasSubstr("; in training, replacing batch: batch: 6\n"));
}

// Two layers make no four stages, so the axis splits the batch.
TEST_F(Warnings, OfferNoPipelineThatTheLayersCannotFill) {
  const Edit pp{kSplit, R"(mesh { name: "pp" size: 4 })"}, four{"devices: 2", "devices: 4"};
  EXPECT_THAT(expect_mended(workspace_, edited(kJob, {pp, four})), HasSubstr("axes: [\"pp\"]"));
  const std::string said = does("check", {pp, four, {"layers: 2", "layers: 4"}}).err;
  EXPECT_THAT(said, HasSubstr("fix: in parallel: pipeline { axis: \"pp\" }\n"));
}

// The remedy is the preset that gives the devices work of their own.
TEST_F(Warnings, AreNoneOfTheMeshThatIsOfferedToAJobWithoutOne) {
  const std::string job = edited(kJob, {{kSplit, ""}});
  const Finished refused = workspace_.run(hyperrun({"check", workspace_.job(job)}));
  std::smatch line;
  ASSERT_TRUE(std::regex_search(refused.err, line, std::regex("\n  legal: (in parallel: .*)\n"))) << refused;
  const Finished f = workspace_.run(hyperrun({"check", workspace_.job(pasted(job, line[1]))}));
  EXPECT_THAT(f, Succeeded()) << f;
  EXPECT_EQ(f.err, "");
}

TEST_F(Warnings, AreNoneOfAJobThatUsesItsDevices) {
  for (const char* command : {"check", "sim", "plan", "run"})
    EXPECT_THAT(does(command, {}).err, Not(HasSubstr("warning"))) << command;
}

// Huang et al. 2019: the bubble is (p-1)/(m+p-1): a half for one micro-batch on two devices, a third for two.
TEST_F(Warnings, OfAPipelineWithFewerMicroBatchesThanDevices) {
  const Edit pipeline{kSplit, R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"};
  const std::string said =
      "job.textproto:4:40: warning: 1 micro-batch for 2 devices of a pipeline: each is idle for 50 % of a "
      "step on "
      "average\n  fix: idle for 33 %:\n         in training: micro_batches: 2\n";
  for (const char* command : {"check", "sim", "plan", "run"})
    EXPECT_THAT(does(command, {pipeline}).err, HasSubstr(said)) << command;
  expect_mended(workspace_, edited(kJob, {pipeline}));
}

TEST_F(Warnings, OfAPipelineWhoseBatchIsTooSmall) {
  const std::string said = expect_mended(
      workspace_, edited(kJob, {{kSplit, R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"},
                                {"batch: 8", "batch: 1 micro_batches: 1"}}));
  EXPECT_THAT(said, AllOf(HasSubstr("job.textproto:6:30: warning: 1 micro-batch for 2 devices"),
                          HasSubstr("fix: idle for 33 %:\n         in training, replacing batch and "
                                    "micro_batches: batch: 2 micro_batches: 2\n")));
}

// Interleaving needs micro-batches in multiples of the number of devices.
TEST_F(Warnings, OfAnInterleavedPipelineWhoseBatchHasNoWholeRounds) {
  const std::string said = expect_mended(
      workspace_,
      edited(kJob,
             {{kSplit, R"(mesh { name: "pp" size: 4 } pipeline { axis: "pp" schedule: "interleaved" })"},
              {"devices: 2", "devices: 4"},
              {"layers: 2", "layers: 8"},
              {"batch: 8", "batch: 6 micro_batches: 2"}}));
  EXPECT_THAT(said, HasSubstr("replacing batch and micro_batches: batch: 8 micro_batches: 4\n"));
}

// The place is in the program that learns. The job's inputs are checked later.
TEST_F(Warnings, OfTheProgramThatLearns) {
  const std::string example = std::string(HYPERRUN_SOURCE_DIR) + "/examples/reinforcement.textproto";
  const std::string layout = R"(mesh { name: "tp" size: 2 } presets: ["tp"] }
}
run)";
  const std::string text = content(example);
  EXPECT_THAT(workspace_.run(hyperrun({"check", workspace_.job(text)})).err, Not(HasSubstr("warning")));
  const std::string idle = edited(text, {{layout, "mesh { name: \"tp\" size: 2 } }\n}\nrun"}});
  EXPECT_THAT(
      workspace_.run(hyperrun({"check", workspace_.job(idle)})).err,
      ContainsRegex("job.textproto:54:14: warning: the 2 devices along \"tp\" do the same work.*\n  fix: in "
                    "parallel: presets: \\[\"tp\"\\]\n"));
}

class LeastJob : public Warnings {
 protected:
  const std::vector<Edit> least_{
      {"data { corpus: \"corpus.txt\" }\n", ""}, {"steps: 6 ", ""}, {" lr: 3e-3", ""}};
};

TEST_F(LeastJob, IsEnoughForThoseWhoLookAhead) {
  for (const char* command : {"check", "sim", "plan"})
    EXPECT_THAT(does(command, least_), Succeeded()) << command;
  EXPECT_THAT(does("sim", least_, {"--generate"}), Succeeded());
}

// A run needs all three at once.
TEST_F(LeastJob, IsNotEnoughToRun) {
  const Finished f = does("run", least_);
  EXPECT_EQ(f.status, 3) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("the job has no \"data\""), HasSubstr("\"training\" has no \"steps\""),
                           HasSubstr("\"training\" has no \"lr\"")));
}

// The simulated step is that of the whole job, and no total is made up.
TEST_F(LeastJob, IsSimulatedLikeTheWholeJob) {
  const auto simulated = [&](const std::vector<Edit>& edits) {
    return nlohmann::json::parse(does("sim", edits, {"--json"}).out);
  };
  const auto whole = simulated({}), least = simulated(least_);
  EXPECT_EQ(least.at("simulated"), whole.at("simulated"));
  EXPECT_THAT(does("sim", least_).out, HasSubstr("tiny: 1 step in "));
}

// The plan of such a job is again such a job.
TEST_F(LeastJob, IsPlannedIntoAJobThatOnlyARunFindsShort) {
  ASSERT_THAT(does("plan", least_, {"--out", "best.textproto"}), Succeeded());
  EXPECT_THAT(workspace_.run(hyperrun({"check", "best.textproto"})), Succeeded());
  const Finished run = workspace_.run(hyperrun({"best.textproto"}));
  EXPECT_EQ(run.status, 3) << run;
  EXPECT_THAT(run.err, HasSubstr("\"training\" has no \"steps\""));
}

}  // namespace
}  // namespace hyperrun::testing
