// Warnings: each command gives them, and the line that they offer mends the job. Besides, the least job that
// is enough for the commands that only look ahead.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

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
                std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {command, workspace_.job(edited(kJob, edits))});
    return workspace_.run(hyperrun(options));
  }

  Workspace workspace_;
};

// The line is pasted in the place of the presets.
TEST_F(Warnings, OfDevicesThatDoTheSameWork) {
  const std::string mesh = R"(mesh { name: "dp" size: 2 } )";
  for (const auto& [presets, line] :
       {std::pair{R"(presets: "zero3")", R"(presets: ["dp", "zero3"])"}, {"", R"(presets: ["dp"])"}}) {
    const std::string said =
        "job.textproto:4:12: warning: the 2 devices along \"dp\" do the same work: nothing "
        "that is computed is split over this axis\n  fix: in parallel: " +
        std::string(line) + "\n";
    for (const char* command : {"check", "sim", "plan", "run"}) {
      const Finished f = does(command, {{kSplit, mesh + presets}});
      ASSERT_THAT(f, Succeeded()) << f;
      EXPECT_THAT(f.err, HasSubstr(said)) << command;
      EXPECT_THAT(f.out, Not(HasSubstr("warning"))) << command;
    }
    const Finished mended = does("check", {{kSplit, mesh + line}});
    EXPECT_EQ(mended.err, "") << mended;
  }
}

// Rules split the batch as a preset does, whatever the axis is called; axes that split it already still do.
TEST_F(Warnings, AreMendedByRulesWhereNoPresetKnowsTheAxis) {
  const std::string mesh = R"(mesh { name: "dp" size: 2 } mesh { name: "x" size: 2 } presets: "dp")";
  const std::vector<Edit> edits{{kSplit, mesh}, {"devices: 2", "devices: 4"}};
  const Finished f = does("check", edits);
  std::smatch line;
  ASSERT_TRUE(std::regex_search(f.err, line,
                                std::regex("along \"x\" do the same work.*\n  fix: in parallel: (.*)\n")))
      << f;
  const Finished mended = does("check", {{kSplit, mesh + " " + line[1].str()}, edits[1]});
  EXPECT_THAT(mended, Succeeded()) << mended;
  EXPECT_EQ(mended.err, "");
  EXPECT_THAT(mended.out, HasSubstr("batch:dp+x"));
}

TEST_F(Warnings, AreNoneOfAJobThatUsesItsDevices) {
  for (const char* command : {"check", "sim", "plan", "run"})
    EXPECT_THAT(does(command, {}).err, Not(HasSubstr("warning"))) << command;
}

// Huang et al. 2019: (p-1)/(m+p-1) of one micro-batch on two devices is a half, of two a third.
TEST_F(Warnings, OfAPipelineWithFewerMicroBatchesThanDevices) {
  const Edit pipeline{kSplit, R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"};
  const std::string said =
      "job.textproto:4:40: warning: 1 micro-batch for 2 devices of a pipeline: each is idle for 50 % of a "
      "step on "
      "average\n  fix: in training: micro_batches: 2 (idle for 33 %)\n";
  for (const char* command : {"check", "sim", "plan", "run"})
    EXPECT_THAT(does(command, {pipeline}).err, HasSubstr(said)) << command;
  EXPECT_EQ(does("check", {pipeline, {"batch: 8", "batch: 8 micro_batches: 2"}}).err, "");
}

TEST_F(Warnings, OfAPipelineWhoseBatchIsTooSmall) {
  const Finished f = does("check", {{kSplit, R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"},
                                    {"batch: 8", "batch: 1 micro_batches: 1"}});
  EXPECT_THAT(f.err, AllOf(HasSubstr("job.textproto:6:30: warning: 1 micro-batch for 2 devices"),
                           HasSubstr("fix: in training: batch: 2 micro_batches: 2 (idle for 33 %)")));
}

// The place is in the program that learns. Whether the inputs of the job are there is asked later.
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

// A run asks for all three at once.
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

// A plan of such a job is such a job.
TEST_F(LeastJob, IsPlannedIntoAJobThatOnlyARunFindsShort) {
  ASSERT_THAT(does("plan", least_, {"--out", "best.textproto"}), Succeeded());
  EXPECT_THAT(workspace_.run(hyperrun({"check", "best.textproto"})), Succeeded());
  const Finished run = workspace_.run(hyperrun({"best.textproto"}));
  EXPECT_EQ(run.status, 3) << run;
  EXPECT_THAT(run.err, HasSubstr("\"training\" has no \"steps\""));
}

}  // namespace
}  // namespace hyperrun::testing
