// hyperrun plan, as a user calls it: its answers one after the other, interrupted or not, and their
// reliability.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Four devices, whose layouts differ much in time.
std::string four() { return edited(kJob, {{"devices: 2", "devices: 4"}, {"size: 2", "size: 4"}}); }

class PlanAnswers : public ::testing::Test {
 protected:
  Finished plan(const std::string& job, const std::vector<std::string>& options = {}) const {
    return workspace_.run_on_job("plan", job, options, Seconds(200));
  }

  Workspace workspace_;
};

// The ranking is printed at once, and stays if the rest is interrupted; the written file is a whole job.
TEST_F(PlanAnswers, InterruptedItHasToldWhatItKnew) {
  const std::string out = (workspace_ / "best.textproto").string();
  const auto process =
      workspace_.start(hyperrun({"plan", workspace_.job(four()), "--sensitivity", "--out", out}));
  ASSERT_TRUE(eventually(
      [&] {
        return process->out().find("as the job has it") != std::string::npos && std::filesystem::exists(out);
      },
      Seconds(60)));
  process->signal(SIGINT);
  const Finished f = process->wait(Seconds(30));
  EXPECT_EQ(f.status, 130) << f;
  EXPECT_THAT(f.err, HasSubstr("interrupted at --sensitivity; what was told before it holds, and " + out));
  EXPECT_EQ(workspace_.run(hyperrun({"check", out})).status, 0);
}

TEST_F(PlanAnswers, InterruptedItHasWhatItKnewForPrograms) {
  const std::string out = (workspace_ / "best.textproto").string();
  const auto process =
      workspace_.start(hyperrun({"plan", workspace_.job(four()), "--sensitivity", "--json", "--out", out}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(out); }, Seconds(60)));
  process->signal(SIGINT);
  const Finished f = process->wait(Seconds(30));
  EXPECT_EQ(f.status, 130) << f;
  const nlohmann::json json = nlohmann::json::parse(f.out);
  EXPECT_GT(json["leaders"].size(), 1u);
  EXPECT_FALSE(json.contains("what_ifs"));
}

// More leaders are asked for than can be simulated before a user would interrupt.
class InterruptedSearch : public PlanAnswers {
 protected:
  Finished interrupted(const std::vector<std::string>& options) const {
    std::vector<std::string> words{
        "plan", workspace_.job(four()), "--ranges", "0", "--leaders", "4000", "--out", out_};
    words.insert(words.end(), options.begin(), options.end());
    std::filesystem::remove(out_);
    const auto process = workspace_.start(hyperrun(words));
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(out_); }, Seconds(60)));
    process->signal(SIGINT);
    return process->wait(Seconds(30));
  }

  const std::string out_ = (workspace_ / "best.textproto").string();
};

TEST_F(InterruptedSearch, TellsTheRankingSoFarAndThatItIsNoMore) {
  const Finished f = interrupted({});
  EXPECT_EQ(f.status, 130) << f;
  EXPECT_THAT(f.err, HasSubstr("interrupted before the ranking was whole; what was simulated so far is told, "
                               "and nothing is certified, and " +
                               out_ + " has the first so far\n"));
  EXPECT_THAT(f.out, AllOf(HasSubstr(" 1f1b, "), HasSubstr("MFU"),
                           HasSubstr("\nthe search was not finished: nothing is certified\n")));
  EXPECT_EQ(workspace_.run(hyperrun({"check", out_})).status, 0);
}

TEST_F(InterruptedSearch, TellsProgramsThatItIsNotWhole) {
  const Finished f = interrupted({"--json"});
  EXPECT_EQ(f.status, 130) << f;
  const nlohmann::json json = nlohmann::json::parse(f.out);
  EXPECT_EQ(json["interrupted"], "the search");
  EXPECT_EQ(json["certified"], false);
  EXPECT_TRUE(json["gap"].is_null());
  EXPECT_GE(json["leaders"].size(), 1u);
  EXPECT_GT(json["leaders"][0]["step_ns"], 0);
  EXPECT_THAT(interrupted({"--csv"}).out, HasSubstr("the search was not finished"));
}

// The process has a handler of its own for ctrl-C.
bool catches_interrupts(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1)) & 1;
  return false;
}

// For so many devices the bounds of all strategies take seconds.
TEST_F(PlanAnswers, InterruptedBeforeAnythingIsKnownItSaysSo) {
  const std::string job = edited(four(), {{"devices: 4", "devices: 16384"},
                                          {"size: 4", "size: 16384"},
                                          {"layers: 2", "layers: 128"},
                                          {"heads: 4 kv_heads: 2", "heads: 128 kv_heads: 128"},
                                          {"hidden: 64", "hidden: 16384"},
                                          {"sequence: 32", "sequence: 4096"},
                                          {"batch: 8", "batch: 16384"}});
  for (const std::string option : {"--json", "--csv"}) {
    const auto process = workspace_.start(hyperrun({"plan", workspace_.job(job), option}));
    ASSERT_TRUE(eventually([&] { return catches_interrupts(process->pid()); }, Seconds(30)));
    process->signal(SIGINT);
    const Finished f = process->wait(Seconds(30));
    EXPECT_EQ(f.status, 130) << f;
    EXPECT_THAT(f.err,
                HasSubstr("interrupted before the ranking was whole; nothing that fits was simulated"));
    EXPECT_EQ(f.out, option == "--json" ? "{\n  \"interrupted\": \"the search\"\n}\n" : "");
  }
}

// The ranking does not wait for this answer.
TEST_F(PlanAnswers, TellsTheRankingBeforeTheJobsOwnStrategy) {
  const Finished f = plan(four(), {"--ranges", "0"});
  const std::size_t ranking = f.out.find("no strategy is more than"), own = f.out.find("\nas the job has it");
  EXPECT_LT(ranking, f.out.find("where the axes of the first lie"));
  EXPECT_LT(f.out.find("where the axes of the first lie"), own);
  ASSERT_NE(own, std::string::npos);
}

// One leader of a small search is slower than the best of a larger one.
TEST_F(PlanAnswers, LetTheJobsOwnStrategyLeadWhereItIsFaster) {
  const std::string job = edited(four(), {{"layers: 2", "layers: 4"}});
  const std::string best = (workspace_ / "best.textproto").string(),
                    again = (workspace_ / "again.textproto").string();
  ASSERT_THAT(plan(job, {"--ranges", "0", "--leaders", "16", "--out", best}), Succeeded());
  const auto planned = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"plan", best, "--leaders", "1", "--ranges", "0"};
    words.insert(words.end(), options.begin(), options.end());
    return workspace_.run(hyperrun(words), Seconds(200));
  };
  const Finished f = planned({"--out", again});
  EXPECT_THAT(f.out,
              HasSubstr("\na faster plan than the first above was found, and is the first from here on"));
  EXPECT_GT(f.out.find("a faster plan"), f.out.find("as the job has it"));
  const auto json = nlohmann::json::parse(planned({"--json"}).out);
  EXPECT_EQ(json["leaders"][0]["step_ns"], json["own"]["step_ns"]);
  EXPECT_LT(json["leaders"][0]["step_ns"], json["leaders"][1]["step_ns"]);
  const auto strategy = [](const std::string& path) {  // the first line names it
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_EQ(strategy(again), strategy(best));
}

TEST_F(PlanAnswers, OfAsManyPlansAsWereAskedFor) {
  const auto robustness = [&](const std::string& count) {
    return nlohmann::json::parse(plan(four(), {"--json", "--ranges", count}).out)["robustness"];
  };
  EXPECT_TRUE(robustness("0").is_null());
  EXPECT_EQ(robustness("2")["plans"].size(), 2u);
}

TEST_F(PlanAnswers, SaysHowFarItCanBeTrusted) {
  const std::string job = edited(four(), {{"hbm: \"16 MiB\"", "hbm: \"16 MiB\" profile: \"h100\""}});
  const Finished told = plan(job), read = plan(job, {"--json"});
  EXPECT_THAT(told.out,
              HasSubstr("of the 33 figures of the profile h100, 0 are measured, 10 from data sheets, 23 "
                        "guessed\n"));
  EXPECT_THAT(told.out, HasSubstr("is the first still the first on another machine?"));
  const nlohmann::json robust = nlohmann::json::parse(read.out)["robustness"];
  const nlohmann::json& first = robust["plans"][0];
  EXPECT_EQ(first["steps_ns"].size(), robust["circumstances"].size());
  EXPECT_LT(first["range"]["fastest_ns"], first["range"]["step_ns"]);
  EXPECT_GT(first["range"]["slowest_ns"], first["range"]["step_ns"]);
  EXPECT_EQ(first["range"]["guesses"].size(), 23u);
}

}  // namespace
}  // namespace hyperrun::testing
