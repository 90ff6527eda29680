// hyperrun sim and validate, as a user calls them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Sim : public ::testing::Test {
 protected:
  Finished sim(const std::vector<std::string>& options) const {
    return workspace_.run_on_job("sim", kJob, options);
  }
  // The table's line of a step.
  static std::string step(const Finished& f) {
    const std::size_t at = f.out.find("\nstep ");
    return f.out.substr(at, f.out.find('\n', at + 1) - at);
  }

  Workspace workspace_;
};

TEST_F(Sim, SaysWhereTheStepGoesAndWhatMoves) {
  const Finished f = sim({});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out,
              AllOf(HasSubstr("model flops utilisation"), HasSubstr("where a step goes"),
                    HasSubstr("0 and 1 like it"),
                    HasSubstr("what a step moves over the levels of the machine"), HasSubstr("all-reduce")));
  EXPECT_FALSE(std::filesystem::exists(workspace_ / "out")) << "it is no run";
}

TEST_F(Sim, AStragglerAndJitterMakeTheStepLonger) {
  const std::string even = step(sim({}));
  const Finished slow = sim({"--slow", "1:3"});
  ASSERT_THAT(slow, Succeeded()) << slow;
  EXPECT_NE(step(slow), even);
  EXPECT_THAT(slow.out, Not(HasSubstr("alike")));
  const Finished jitter = sim({"--jitter", "0.2", "--seed", "3"});
  ASSERT_THAT(jitter, Succeeded()) << jitter;
  EXPECT_NE(step(jitter), even);
  EXPECT_EQ(step(sim({"--jitter", "0.2", "--seed", "3"})), step(jitter)) << "a seed repeats it";
}

TEST_F(Sim, PrintsALineADeviceAndExplains) {
  const Finished csv = sim({"--csv"});
  ASSERT_THAT(csv, Succeeded()) << csv;
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 3) << csv.out;
  EXPECT_TRUE(csv.out.starts_with("device,"));
  const Finished explained = sim({"--explain", "2"});
  ASSERT_THAT(explained, Succeeded()) << explained;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("how the costliest instructions of device 0 are reckoned"),
                                   HasSubstr("B/s for a device [given by the job]")));
}

TEST_F(Sim, WritesTracesOfTheDevicesThatAreAskedFor) {
  const std::string prefix = workspace_ / "chakra";
  const Finished f = sim({"--devices", "1", "--trace", workspace_ / "step.pftrace", "--chakra", prefix});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_TRUE(std::filesystem::exists(workspace_ / "step.pftrace"));
  EXPECT_TRUE(std::filesystem::exists(prefix + ".1.et"));
  EXPECT_FALSE(std::filesystem::exists(prefix + ".0.et"));
}

TEST_F(Sim, RefusesWhatCannotBe) {
  const auto refused = [&](const std::vector<std::string>& options) { return sim(options).err; };
  EXPECT_THAT(refused({"--slow", "2:1.5"}),
              HasSubstr("--slow: error[usage]: \"2:1.5\" names none of the devices 0 to 1"));
  EXPECT_THAT(refused({"--slow", "4294967297:2"}), HasSubstr("names none of the devices"));
  EXPECT_THAT(refused({"--slow", "1:2,1:3"}), HasSubstr("is named already"));
  EXPECT_THAT(refused({"--jitter", "0.1", "--seed", "99999999999999999999"}),
              HasSubstr("--seed: error[usage]: 99999999999999999999 is more than 18446744073709551615"));
  EXPECT_THAT(refused({"--jitter", "0.1", "--seed", "-1"}), HasSubstr("-1 is less than 0"));
  EXPECT_THAT(refused({"--jitter", "some"}), HasSubstr("--jitter: error[usage]: \"some\" is no number"));
  EXPECT_THAT(refused({"--slow", "1:2,,0:2"}), HasSubstr("--slow: error[usage]: a value is missing"));
  EXPECT_THAT(refused({"--devices", "0,"}), HasSubstr("--devices: error[usage]: a value is missing"));
  EXPECT_THAT(refused({"--csv", "--explain", "3"}), HasSubstr("error[usage]"));
  EXPECT_THAT(refused({"--devices", "1"}), HasSubstr("no traces are asked for"));
  EXPECT_THAT(refused({"--slow", "1"}), HasSubstr("--slow"));
  EXPECT_THAT(refused({"--slow", "1:-2"}), HasSubstr("--slow: error[usage]"));
  EXPECT_THAT(refused({"--jitter", "7"}), HasSubstr("--jitter: error[usage]"));
  EXPECT_THAT(refused({"--slow", "1:2", "--explain", "3"}), HasSubstr("error[usage]")) << "of even devices";
  EXPECT_THAT(refused({"--devices", "5", "--trace", "x"}),
              HasSubstr("--devices: error[usage]: there is no device 5"));
  EXPECT_THAT(refused({"--json", "--csv"}), HasSubstr("error[usage]"));
}

constexpr const char* kRuns =
    "set,use,devices,batch,micro_batch,hidden,heads,layers,sequence,tp,dp,pp,milliseconds\n"
    "mine,calibration,1,2,1,256,4,2,128,1,1,1,9\n"
    "mine,judged,2,4,1,256,4,2,128,1,2,1,8\n"
    "mine,judged,4,8,2,256,4,2,128,2,1,2,12\n";

TEST(Validate, SetsSimulationBesideMeasurement) {
  const Workspace workspace;
  workspace.job(kRuns, "runs.csv");
  const auto validate = [&](std::vector<std::string> options) {
    std::vector<std::string> words{"validate", "--runs", "runs.csv"};
    words.insert(words.end(), options.begin(), options.end());
    return workspace.run(hyperrun(words));
  };
  const Finished text = validate({"--rows"});
  ASSERT_THAT(text, Succeeded()) << text;
  EXPECT_THAT(text.out, AllOf(HasSubstr("a100_megatron: "), HasSubstr("runs.csv:4"), HasSubstr("calibration"),
                              HasSubstr("mean error")));
  const Finished json = validate({"--json", "--profile", "a100"});
  ASSERT_THAT(json, Succeeded()) << json;
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_EQ(parsed.at("profile"), "a100");
  EXPECT_EQ(parsed.at("sets").size(), 2U);
  EXPECT_EQ(parsed.at("runs").size(), 3U);
  EXPECT_THAT(validate({"--csv"}).out, HasSubstr("runs.csv:2,mine,calibration,1,256,2,1,1,1,1,2,9.000000,"));
}

TEST(Validate, WritesAProfileThatComesCloser) {
  const Workspace workspace;
  workspace.job(kRuns, "runs.csv");
  const Finished f = workspace.run(
      hyperrun({"validate", "--runs", "runs.csv", "--calibrate", "fitted.textproto", "--json"}));
  ASSERT_THAT(f, Succeeded()) << f;
  const Finished again =
      workspace.run(hyperrun({"validate", "--runs", "runs.csv", "--profile", "fitted.textproto", "--json"}));
  ASSERT_THAT(again, Succeeded()) << again;
  const auto error = [](const std::string& text) {
    return nlohmann::json::parse(text.substr(text.find("\n{") == std::string::npos ? 0 : text.find("\n{")))
        .at("sets")[0]
        .at("mean_error")
        .get<double>();
  };
  const Finished before = workspace.run(hyperrun({"validate", "--runs", "runs.csv", "--json"}));
  EXPECT_LT(error(again.out), error(before.out));
}

TEST_F(Sim, ForetellsThePassesOfAGeneration) {
  const Finished table = sim({"--generate"});
  EXPECT_THAT(table, Succeeded());
  EXPECT_THAT(table.out, HasSubstr("prefill"));
  const auto passes = nlohmann::json::parse(sim({"--generate", "--json"}).out);
  for (const char* pass : {"prefill", "decode"}) {
    const auto& p = passes.at(pass);
    EXPECT_GT(p.at("ns").get<std::int64_t>(), 0);
    EXPECT_NEAR(
        p.at("tokens_per_second").get<double>(),
        p.at("sequences").get<double>() * p.at("tokens").get<double>() / p.at("ns").get<double>() * 1e9, 1);
  }
  EXPECT_EQ(passes.at("decode").at("tokens"), 1);
  EXPECT_GT(passes.at("prefill").at("hbm_peak_bytes"), passes.at("decode").at("hbm_peak_bytes"));
  EXPECT_THAT(sim({"--generate", "--csv"}).err, HasSubstr("error[usage]"));
}

TEST(SimGeneration, HasARangeOfEachPass) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(kJob, {{"hbm: \"16 MiB\"", "hbm: \"16 MiB\" profile: \"h100\""}}));
  const Finished read = workspace.run(hyperrun({"sim", "--generate", job, "--json"}));
  ASSERT_THAT(read, Succeeded()) << read;
  const auto passes = nlohmann::json::parse(read.out);
  for (const auto& [name, pass] : passes.items()) {
    const auto& range = pass.at("range");
    EXPECT_EQ(range.at("step_ns"), pass.at("ns")) << name;
    EXPECT_LT(range.at("fastest_ns"), pass.at("ns")) << name;
    EXPECT_GT(range.at("slowest_ns"), pass.at("ns")) << name;
  }
  const Finished told = workspace.run(hyperrun({"sim", "--generate", job}));
  for (const char* words : {"of the 33 figures of the profile h100", "a pass of prefill is ",
                            "a pass of decode hangs most on the guess"})
    EXPECT_THAT(told.out, HasSubstr(words));
}

TEST(SimParts, TheMeanOfAllDevicesStandsFirst) {
  const Workspace workspace;
  const std::string job = HYPERRUN_SOURCE_DIR "/examples/pipeline.textproto";
  const Finished told = workspace.run(hyperrun({"sim", job, "--no-range"}));
  const auto read = nlohmann::json::parse(workspace.run(hyperrun({"sim", job, "--no-range", "--json"})).out);
  double mean = 0;
  for (const auto& part : read["simulated"]["parts"])
    mean += part["compute_ns"].get<double>() / read["simulated"]["step_ns"].get<double>() / 4;
  char expected[32];
  std::snprintf(expected, sizeof expected, "mean of all +%.1f%% ", 100 * mean);
  EXPECT_THAT(told.out, ContainsRegex(expected));
}

// The parts of a step add up to it, for people and for programs.
TEST_F(Sim, TellsProgramsWhereTheStepGoes) {
  const auto simulated = nlohmann::json::parse(sim({"--json"}).out).at("simulated");
  std::int64_t sum = 0;
  for (const char* part : {"compute_ns", "communication_ns", "transfer_ns", "bubble_ns", "optimizer_ns"})
    sum += simulated.at("parts").at(0).at(part).get<std::int64_t>();
  EXPECT_EQ(sum, simulated.at("step_ns"));
  EXPECT_GT(simulated.at("mfu"), 0);
  EXPECT_GE(simulated.at("hfu"), simulated.at("mfu"));
  EXPECT_FALSE(simulated.at("levels").empty());
  const std::string csv = sim({"--csv"}).out;
  EXPECT_THAT(csv.substr(0, csv.find('\n')), HasSubstr(",compute_ns,communication_ns,"));
}

TEST(Validate, RefusesWhatIsNoRun) {
  const Workspace workspace;
  workspace.job("devices,batch\n1,2\n", "runs.csv");
  const auto refused = [&](const std::vector<std::string>& words) {
    return workspace.run(hyperrun(words)).err;
  };
  EXPECT_THAT(refused({"validate", "--runs", "runs.csv"}),
              HasSubstr("runs.csv:1: error[bad-value]: there is no column"));
  EXPECT_THAT(refused({"validate", "--runs", "nothing.csv"}), HasSubstr("nothing.csv"));
  EXPECT_THAT(refused({"validate", "--profile", "nothing"}),
              HasSubstr("error[missing-file]: there is no profile"));
  std::string runs = kRuns;
  workspace.job(edited(runs, {{"devices,", "devices,devices,"}}), "runs.csv");
  EXPECT_THAT(refused({"validate", "--runs", "runs.csv"}), HasSubstr("\"devices\" is there twice"));
  workspace.job(edited(runs, {{"devices,", "devices,speed,"}}), "runs.csv");
  EXPECT_THAT(refused({"validate", "--runs", "runs.csv"}), HasSubstr("\"speed\" is not known"));
  workspace.job(kRuns, "runs.csv");
  EXPECT_THAT(refused({"validate", "--runs", "runs.csv", "--profile", "matrix384", "--calibrate", "out"}),
              HasSubstr("--profile: error[bad-value]"));
  EXPECT_THAT(refused({"validate", "--runs", "runs.csv", "--calibrate", "nothing/out"}),
              HasSubstr("nothing/out: error[unwritable]"));
}

}  // namespace
}  // namespace hyperrun::testing
