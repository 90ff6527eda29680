// The paced clock from end to end: measured times are the simulated ones, for the job and to its scale.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "runtime/report/report.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

std::string paced(const std::string& more) {
  return edited(kJob, {{"steps: 6", "steps: 2"}, {"run {", "run { clock: \"paced\" dilation: 2000 " + more}});
}

PacedUse measured(const Workspace& workspace) {
  const RunReport report = read_report(workspace / "out" / "report.json");
  EXPECT_TRUE(report.paced.has_value());
  EXPECT_TRUE(totals(report).off_plan.empty());
  return *report.paced;
}

// A step is never shorter than simulated; bench/paced measures on a quiet machine how much longer it is.
TEST(PacedRun, LastsNoShorterThanSimulated) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({workspace.job(paced(""))}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("paced clock, time stretched 2000-fold"));
  const PacedUse use = measured(workspace);
  EXPECT_EQ(use.dilation, 2000);
  EXPECT_EQ(use.steps, 2);
  EXPECT_EQ(use.original_peak, Bytes(0));
  EXPECT_GT(use.measured.value, 0.99 * static_cast<double>(use.predicted.value));
  for (const PacedInstruction& i : use.instructions)
    EXPECT_GT(i.measured.value, 0.99 * static_cast<double>(i.predicted.value)) << i.instruction;
}

TEST(PacedRun, ToTheScaleOfALargerJob) {
  const Workspace workspace;
  const Finished plain = workspace.run(hyperrun({"sim", workspace.job(), "--json"}));
  ASSERT_THAT(plain, Succeeded()) << plain;
  const Finished f = workspace.run(hyperrun({workspace.job(paced("shrink { width: 2 sequence: 2 } "))}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("to scale: instructions last as long as those of a llama of"));
  const PacedUse use = measured(workspace);
  const RunReport simulated = report_from_json(plain.out, "sim");
  EXPECT_EQ(use.predicted, simulated.steps[0].time) << "of the job's own model";
  EXPECT_EQ(use.original_peak, simulated.devices[0].tiers[0].planned_peak);
  const RunReport report = read_report(workspace / "out" / "report.json");
  EXPECT_LT(report.devices[0].tiers[0].executed_peak * 2, use.original_peak);
}

// A generation with prompts in chunks and tokens one by one, to the scale of a larger model.
TEST(PacedGeneration, PassesLastNoShorterThanSimulated) {
  const Workspace workspace;
  const std::string job = edited(paced("shrink { width: 2 sequence: 2 } "),
                                 {{"training {", "inference { slots: 2 context: 32 chunk: 8 } training {"}});
  const Finished f = workspace.run(hyperrun({"generate", workspace.job(job), "--paced"}));
  ASSERT_THAT(f, Succeeded()) << f;
  for (const char* pass : {"a pass of \"prefill\"", "a pass of \"decode\"", "to the scale of one"})
    EXPECT_THAT(f.out, HasSubstr(pass));
  const Finished g = workspace.run(hyperrun({"generate", workspace.job(job), "--paced", "--json"}));
  ASSERT_THAT(g, Succeeded()) << g;
  const auto simulated = workspace.run(hyperrun({"sim", workspace.job(job), "--generate", "--json"}));
  const auto json = nlohmann::json::parse(g.out), plain = nlohmann::json::parse(simulated.out);
  EXPECT_EQ(json["hbm_executed_peak_bytes"], json["hbm_planned_peak_bytes"]);
  for (const char* name : {"prefill", "decode"}) {
    const auto& pass = json[name];
    EXPECT_GE(pass["paced"]["steps"], 2) << name;
    EXPECT_EQ(pass["paced"]["predicted_ns"], plain[name]["ns"]) << name;
    EXPECT_GT(pass["paced"]["measured_ns"], 0.99 * pass["paced"]["predicted_ns"].get<double>()) << name;
  }
}

TEST(PacedGeneration, WantsRoomForTwoSteps) {
  const Workspace workspace;
  const std::string job = edited(paced("shrink { sequence: 8 } "),
                                 {{"training {", "inference { context: 16 chunk: 8 } training {"}});
  const Finished f = workspace.run(hyperrun({"generate", workspace.job(job), "--paced"}));
  EXPECT_EQ(f.status, 3) << f;
  EXPECT_THAT(f.err, HasSubstr("sequences of 2 positions leave no room"));
}

TEST(PacedGeneration, WantsAPacedClock) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"generate", workspace.job(), "--paced"}));
  EXPECT_EQ(f.status, 3) << f;
  EXPECT_THAT(f.err, HasSubstr("the job's clock is \"native\""));
}

// A fault each 4 s of wall time. Repairs take longer than anything else, and take no wall time.
constexpr const char* kDrawn = R"(device { mtbf: "8 ms" repair: "60 ms" lasting: 0.3 }
delays { detection: "0.6 ms" start: "0.5 ms" compile: "0 s" join: "0 s" }
storage { bandwidth: "1 GB/s" }
save { beside: true share: 0 write_time: "0.01 ms" read_time: "0.01 ms" }
horizon: "10 s"
)";

TEST(PacedRun, TellsItsGoodputUnderDrawnFaults) {
  const Workspace workspace;
  workspace.job(kDrawn, "faults.textproto");
  const std::string chaos =
      "elastic: false chaos { model: \"faults.textproto\" seed: 4 } checkpoint_every: 3 ";
  const std::string job = edited(
      kJob,
      {{"steps: 6", "steps: 30"}, {"restarts: 0", "restarts: 100 clock: \"paced\" dilation: 1000 " + chaos}});
  const Finished f = workspace.run(hyperrun({workspace.job(job)}), Seconds(60));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("goodput ")) << f;
  const auto g = nlohmann::json::parse(content(workspace / "out/manifest.json")).at("goodput");
  const auto& foretold = g.at("foretold");
  EXPECT_GE(g.at("faults"), 1) << f;
  EXPECT_EQ(g.at("faults"), foretold.at("faults")) << g;
  EXPECT_GT(g.at("waiting_seconds"), 0.05) << "it waits for a repair of 60 ms of the machine: " << g;
  EXPECT_LT(f.time.count(), 1000 * g.at("waiting_seconds").get<double>()) << "which nobody waits for: " << g;
  // Restarts are not as long as the file says. Without them, each fault may lose the steps between two saves
  // more or less than foretold.
  const auto share = [](const nlohmann::json& p) {
    return p.at("useful_seconds").get<double>() /
           (p.at("seconds").get<double>() - p.at("noticing_seconds").get<double>() -
            p.at("starting_seconds").get<double>() - p.at("reading_seconds").get<double>() -
            p.at("waiting_seconds").get<double>());
  };
  const double of_a_fault = 3 * g.at("step_seconds").get<double>() / g.at("useful_seconds").get<double>();
  EXPECT_NEAR(share(g), share(foretold), g.at("faults").get<double>() * of_a_fault) << g;
}

TEST(PacedRun, RefusesAModelOfFaultsThatItCannotGoBy) {
  const Workspace workspace;
  workspace.job(kDrawn, "faults.textproto");
  const auto refused = [&](const std::string& words) {
    return workspace.run(hyperrun({workspace.job(edited(kJob, {{"restarts: 0", words}}))})).err;
  };
  EXPECT_THAT(refused("clock: \"paced\" chaos { model: \"faults.textproto\" }"),
              HasSubstr("error[bad-value]: faults come by the paced clock, whose dilation"));
  EXPECT_THAT(refused("chaos { model: \"none.textproto\" }"), HasSubstr("error[missing-file]"));
}

TEST(PacedRun, RefusesWhatCannotBeExecutedToScale) {
  const Workspace workspace;
  const auto refused = [&](const std::string& job) {
    return workspace.run(hyperrun({"check", workspace.job(job)})).err;
  };
  EXPECT_THAT(refused(edited(kJob, {{"run {", "run { shrink { width: 2 } "}})),
              HasSubstr("only the paced clock executes to scale"));
  EXPECT_THAT(refused(paced("shrink { width: 7 } ")), HasSubstr("width 7 does not divide"));
  EXPECT_THAT(refused(paced("shrink { vocab: 64 } ")), HasSubstr("vocab"));
  EXPECT_THAT(refused(edited(paced(""), {{"supernode {", "supernode { profile: \"a100_megatron\" "}})),
              HasSubstr("the paced clock has no feeder"));
}

}  // namespace
}  // namespace hyperrun::testing
