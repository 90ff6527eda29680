// hyperrun check --memory: the chart and the table of HBM over a step, as a user asks for them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"
#include "tests/report/svg_text.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckMemory : public ::testing::Test {
 protected:
  Finished check(const std::vector<Edit>& edits,
                 const std::vector<std::string>& options = {"--memory", "memory.svg"}) const {
    return workspace_.run_on_job("check", edited(kJob, edits), options);
  }
  std::string picture() const {
    std::ifstream file(workspace_ / "memory.svg");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  Workspace workspace_;
};

TEST_F(CheckMemory, PrintsATableAndDraws) {
  const Finished f = check({});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("HBM of device 0 over the simulated step, the most at "),
                           HasSubstr("at the peak"), HasSubstr("HBM over the simulated step: memory.svg\n")));
  const std::string svg = picture();
  expect_well_formed(svg);
  EXPECT_THAT(svg, AllOf(HasSubstr(">tiny: HBM over a step</text>"), HasSubstr(">optimizer</text>"),
                         HasSubstr("budget 16.0 MiB</text>"), Not(HasSubstr("above the budget"))));
  std::smatch together;
  ASSERT_TRUE(std::regex_search(f.out, together, std::regex("\n  together +([0-9.]+ MiB)"))) << f.out;
  EXPECT_THAT(svg, HasSubstr("peak " + together[1].str() + " at "));
}

// Redistributions are listed for rows in one piece.
TEST_F(CheckMemory, TakesAJobInTiles) {
  const std::string tp = R"(mesh { name: "tp" size: 2 } presets: "tp" tiles: 2)";
  const Finished f = check({{R"(mesh { name: "dp" size: 2 } presets: "dp")", tp}}, {"--traffic"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("all-reduce"));
}

// The first screen: whether it fits, how long a step is, what it sends; as sim and the report of a run have
// it.
TEST_F(CheckMemory, AnswersFirstWhatPeopleAsk) {
  const Finished f = check({}, {});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("2 devices, mesh dp=2\n\nfits: "), HasSubstr("where the step goes"),
                           ContainsRegex("dp +all-reduce +[0-9]+ "), Not(HasSubstr("redistributions")),
                           Not(HasSubstr("layouts\n"))));
  std::smatch step;
  ASSERT_TRUE(std::regex_search(f.out, step, std::regex("\nstep +([0-9.]+ .?s)"))) << f.out;
  const Finished sim = workspace_.run(hyperrun({"sim", "job.textproto"}));
  EXPECT_THAT(sim.out, ContainsRegex("\nstep +" + step[1].str()));
  EXPECT_THAT(check({}, {"--layouts"}).out, ContainsRegex("\nlayouts\n(.*\n)+ +embed +vocab="));
  EXPECT_THAT(check({}, {"--traffic"}).out,
              HasSubstr("\nredistributions, with the bytes that device 0 moves"));
}

// The verdict counts all tiers: this job has room in HBM, and none in the pool.
TEST(Check, SaysThatThePoolIsTooSmall) {
  const Workspace workspace;
  std::ifstream file(std::string(HYPERRUN_SOURCE_DIR) + "/examples/offload.textproto");
  std::ostringstream text;
  text << file.rdbuf();
  const Finished f = workspace.run_on_job("check", edited(text.str(), {{"64 MiB", "8 MiB"}}));
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(
      f.out,
      ContainsRegex("\ndoes not fit: [0-9.]+ MiB of 11.0 MiB of HBM, [0-9.]+ MiB of 8.00 MiB of the pool\n"));
  EXPECT_THAT(f.out, HasSubstr("simulated as if the job fitted"));
}

TEST_F(CheckMemory, IsAskedFor) {
  const Finished f = check({}, {});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, Not(HasSubstr("over the simulated step")));
}

TEST_F(CheckMemory, DrawsWhatDoesNotFit) {
  const Finished f = check({{"16 MiB", "1 MiB"}});
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(f.err, HasSubstr("job.textproto:2:24: error[does-not-fit]"));
  EXPECT_THAT(f.out, HasSubstr("HBM over the simulated step: memory.svg\n"));
  const std::string svg = picture();
  expect_well_formed(svg);
  EXPECT_THAT(svg, AllOf(HasSubstr(">budget 1.00 MiB</text>"), HasSubstr("MiB above the budget</tspan>")));
}

TEST_F(CheckMemory, HasAPanelForEachStage) {
  const Finished f = check({{R"(mesh { name: "dp" size: 2 } presets: "dp")",
                             R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"}});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_EQ(count(f.out, "over the simulated step, the most at "), 2u);
  EXPECT_THAT(f.out, HasSubstr("HBM of device 1, pp 1 (layers 1), over"));
  EXPECT_THAT(picture(), AllOf(HasSubstr(">pp 0 (layers 0"), HasSubstr(">pp 1 (layers 1")));
}

// The peak of the job is the one that a run announces and that its report has.
TEST_F(CheckMemory, NamesTheStageOfEachTableAndTheRunsPeak) {
  const std::vector<Edit> stages{{R"(mesh { name: "dp" size: 2 } presets: "dp")",
                                  R"(mesh { name: "pp" size: 2 } pipeline { axis: "pp" })"},
                                 {"batch: 8", "batch: 8 micro_batches: 4"}};
  const Finished f = check(stages, {"--memory", "memory.svg", "--traffic"});
  ASSERT_THAT(f, Succeeded()) << f;
  for (const std::string stage : {"pp 0 (layers 0)", "pp 1 (layers 1)"})
    for (const std::string& title : {"redistributions of " + stage + ", with", "\n  " + stage,
                                     ", " + stage + ", over the simulated step"})
      EXPECT_THAT(f.out, HasSubstr(title));
  std::smatch peak;
  ASSERT_TRUE(
      std::regex_search(f.out, peak, std::regex("\nfits: (.*) of 16.0 MiB of HBM, the most in pp [01] \\(")))
      << f.out;
  const Finished run = workspace_.run(hyperrun({workspace_.job(edited(kJob, stages))}));
  ASSERT_THAT(run, Succeeded()) << run;
  EXPECT_THAT(run.out, HasSubstr(", HBM " + peak[1].str() + " of 16.0 MiB each"));
  EXPECT_THAT(workspace_.run(hyperrun({"report", "out"})).out,
              ContainsRegex("all +" + peak[1].str() + " +" + peak[1].str()));
}

// The shipped examples can be used: trained, but for jobs whose devices only have room for a generation.
TEST(Check, AcceptsEveryExample) {
  namespace fs = std::filesystem;
  const Workspace workspace;
  int examples = 0;
  for (const auto& file : fs::directory_iterator(fs::path(HYPERRUN_SOURCE_DIR) / "examples")) {
    if (file.path().extension() != ".textproto") continue;
    ++examples;
    const Command use = file.path().stem().string().starts_with("llama8b_generation")
                            ? hyperrun({"sim", file.path().string(), "--generate"})
                            : hyperrun({"check", file.path().string()});
    const Finished f = workspace.run(use, Seconds(60));
    // One continues the run of another, one learns from data that tools/omni_data fetches; their users make
    // both.
    const std::map<std::string, std::string> made{{"reinforcement", "runs/sums"},
                                                  {"omni", "data/omni/manifest.jsonl"}};
    const std::string stem = file.path().stem();
    if (f.status != 0 && made.contains(stem))
      EXPECT_THAT(f.err,
                  AllOf(HasSubstr(stem + ".textproto:"), HasSubstr("there is no"), HasSubstr(made.at(stem))))
          << f;
    else
      EXPECT_THAT(f, Succeeded()) << file.path() << f;
  }
  EXPECT_GT(examples, 10);
}

TEST_F(CheckMemory, SaysBeforeTheWorkWhatItCannotWrite) {
  std::filesystem::create_directory(workspace_ / "folder.svg");
  for (const std::string file : {"nothing/memory.svg", "folder.svg"}) {
    const Finished f = check({}, {"--memory", file});
    EXPECT_EQ(f.status, 7) << f;
    EXPECT_EQ(f.out, "");
    EXPECT_THAT(f.err, HasSubstr("--memory " + file + ": error[unwritable]"));
  }
  EXPECT_THAT(check({}, {"--memory", ""}).err, HasSubstr("error[usage]"));
}

// A picture's format follows from its name.
TEST_F(CheckMemory, DrawsOnlyIntoAnSvg) {
  for (const std::string file : {"memory.png", "memory", "memory.svg.txt"}) {
    const Finished f = check({}, {"--memory", file});
    EXPECT_EQ(f.status, 2) << f;
    EXPECT_EQ(f.out, "");
    EXPECT_THAT(f.err, AllOf(HasSubstr("--memory " + file + ": error[usage]"),
                             HasSubstr("legal: a name that ends in .svg"), HasSubstr("fix: name it memory")));
    EXPECT_FALSE(std::filesystem::exists(workspace_ / file));
  }
}

// Runs on a terminal, which script makes.
Finished on_terminal(const Workspace& workspace, const std::vector<std::string>& arguments) {
  std::string command;
  for (const std::string& word : hyperrun(arguments)) command += "'" + word + "' ";
  return workspace.run({"script", "-qec", command, "/dev/null"});
}

TEST(OnATerminal, ThoseWhoWaitAreToldThatAJobIsCompiled) {
  const Workspace workspace;
  if (workspace.run({"script", "--version"}).status != 0) GTEST_SKIP() << "there is no script";
  const std::string job = workspace.job();
  for (const char* command : {"check", "sim"}) {
    const Finished f = on_terminal(workspace, {command, job});
    EXPECT_THAT(f, Succeeded()) << f;
    EXPECT_THAT(f.out, ContainsRegex("\r\033\\[Kcompiling\r\033\\[K[a-z]"))
        << "and it is wiped out before the rest";
  }
  const Finished plan = on_terminal(workspace, {"plan", job, "--leaders", "2"});
  EXPECT_THAT(plan.out, ContainsRegex("K[0-9]+ leaders tried, [0-9]+ of up to [0-9]+ simulated"));
}

// Each number before these words, in the order of the output.
std::vector<int> told(const std::string& text, const std::string& words) {
  std::vector<int> numbers;
  const std::regex counted("K([0-9]+) " + words);
  for (std::sregex_iterator at(text.begin(), text.end(), counted), end; at != end; ++at)
    numbers.push_back(std::stoi((*at)[1]));
  return numbers;
}

// Threads that finish at once report in any order.
TEST(OnATerminal, NoCounterRunsBackwards) {
  const Workspace workspace;
  if (workspace.run({"script", "--version"}).status != 0) GTEST_SKIP() << "there is no script";
  const Finished f = on_terminal(
      workspace, {"plan", workspace.job(edited(kJob, {{"hbm: \"16 MiB\"", "profile: \"h100\""}}))});
  for (const char* words : {"leaders tried", "of [0-9]+ variations of the machine simulated"}) {
    const std::vector<int> numbers = told(f.out, words);
    EXPECT_GT(numbers.size(), 2u) << words << f;
    EXPECT_TRUE(std::ranges::is_sorted(numbers)) << words << f;
  }
}

// All checks but those that need the corpus.
TEST(Check, OfAJobWhoseCorpusIsMissingTellsTheRest) {
  const Workspace workspace;
  std::filesystem::remove(workspace / "corpus.txt");
  const Finished f = workspace.run(hyperrun({"check", workspace.job()}));
  EXPECT_EQ(f.status, 6) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("\nfits: "), HasSubstr("\nHBM of each device")));
  EXPECT_THAT(f.err, HasSubstr("job.textproto:5:8: error[missing-file]"));

  const std::string example = std::string(HYPERRUN_SOURCE_DIR) + "/examples/reinforcement.textproto";
  std::ifstream file(example);
  std::ostringstream text;
  text << file.rdbuf();
  const Finished learns = workspace.run(hyperrun({"check", workspace.job(text.str(), "learns.textproto")}));
  EXPECT_EQ(learns.status, 6) << learns;
  EXPECT_THAT(learns.out, AllOf(HasSubstr("devices\n"), HasSubstr("HBM")));
}

}  // namespace
}  // namespace hyperrun::testing
