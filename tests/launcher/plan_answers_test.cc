// hyperrun plan, as a user calls it: answers one after the other, interrupted or not, and how far they can be
// trusted.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

// Four devices, whose layouts differ much in time.
std::string four() { return edited(kJob, {{"devices: 2", "devices: 4"}, {"size: 2", "size: 4"}}); }

class PlanAnswers : public ::testing::Test {
 protected:
  Finished plan(const std::string& job, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"plan", workspace_.job(job)};
    words.insert(words.end(), options.begin(), options.end());
    return workspace_.run(hyperrun(words), Seconds(200));
  }

  Workspace workspace_;
};

// The ranking is there at once, and stays when the rest is interrupted; what is written is a whole job.
TEST_F(PlanAnswers, InterruptedItHasToldWhatItKnew) {
  const std::string out = (workspace_ / "best.textproto").string();
  const auto process =
      workspace_.start(hyperrun({"plan", workspace_.job(four()), "--sensitivity", "--out", out}));
  ASSERT_TRUE(eventually(
      [&] {
        return process->out().find("no strategy is more than") != std::string::npos &&
               std::filesystem::exists(out);
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
