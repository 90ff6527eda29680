// hyperrun plan, as a user calls it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Four devices, whose layouts differ much in time.
std::string four() { return edited(kJob, {{"devices: 2", "devices: 4"}, {"size: 2", "size: 4"}}); }

class PlanCommand : public ::testing::Test {
 protected:
  Finished plan(const std::string& job, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"plan", workspace_.job(job)};
    words.insert(words.end(), options.begin(), options.end());
    return workspace_.run(hyperrun(words), Seconds(200));
  }

  Workspace workspace_;
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) list.push_back(line);
  return list;
}

// Of a line of CSV whose quotes stand around whole fields.
std::size_t columns(const std::string& line) {
  std::size_t n = 1;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    n += c == ',' && !quoted;
  }
  return n;
}

TEST_F(PlanCommand, RanksStrategiesAndCertifiesTheBest) {
  const Finished f = plan(kJob);
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr(" strategies: "), HasSubstr("a micro-batch"),
                           HasSubstr("no strategy is more than ")));
  EXPECT_EQ(f.err, "") << "progress is for a terminal";
  EXPECT_FALSE(std::filesystem::exists(workspace_ / "out")) << "it is no run";
}

TEST_F(PlanCommand, WritesAJobThatCanBeChecked) {
  const Finished f = plan(four(), {"--out", "best.textproto"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(workspace_.run(hyperrun({"check", "best.textproto"})), Succeeded());
}

TEST_F(PlanCommand, NeedsNoParallelismOfTheJobsOwn) {
  const std::size_t begin = kJob.find("parallel"), end = kJob.find("data {");
  ASSERT_LT(begin, end);
  const Finished without = plan(kJob.substr(0, begin) + kJob.substr(end));
  EXPECT_THAT(without, Succeeded()) << without;
  EXPECT_THAT(without.out, Not(HasSubstr("as the job has it")));
  const Finished wrong = plan(edited(kJob, {{"size: 2", "size: 3"}}));
  EXPECT_THAT(wrong, Succeeded()) << wrong;
  EXPECT_THAT(wrong.out,
              HasSubstr("as the job has it (not a strategy of the space): the mesh has 3 devices"));
}

TEST_F(PlanCommand, PrintsJsonAndCsv) {
  const Finished j = plan(kJob, {"--json"});
  ASSERT_THAT(j, Succeeded()) << j;
  const auto json = nlohmann::json::parse(j.out);
  const Finished c = plan(kJob, {"--csv"});
  ASSERT_THAT(c, Succeeded()) << c;
  const std::vector<std::string> csv = lines(c.out);
  ASSERT_EQ(csv.size(), json["leaders"].size() + 1);
  for (const std::string& line : csv) EXPECT_EQ(columns(line), columns(csv[0])) << line;
  EXPECT_THAT(csv[1], HasSubstr(json["leaders"][0]["strategy"].get<std::string>()));
}

TEST_F(PlanCommand, RefusesWithPlaceAndRemedy) {
  const Finished space = plan(kJob, {"--space", "everything"});
  EXPECT_EQ(space.status, 2) << space;
  EXPECT_THAT(space.err,
              AllOf(HasSubstr("--space: error[usage]"), HasSubstr("legal: all, megatron, deepspeed")));
  const Finished full = plan(edited(kJob, {{"16 MiB", "64 KiB"}}));
  EXPECT_EQ(full.status, 4) << full;
  EXPECT_THAT(full.err,
              AllOf(HasSubstr("job.textproto:2:24: error[does-not-fit]"),
                    HasSubstr("for the one that needs least: "), HasSubstr("fix: raise supernode.hbm")));
  const Finished trains = plan(edited(kJob, {{"steps: 6", "steps: 0"}}));
  EXPECT_EQ(trains.status, 3) << trains;
  EXPECT_THAT(plan(kJob, {"--svg", "plan.png"}).err, HasSubstr("--svg plan.png: error[usage]"));
  EXPECT_THAT(plan(kJob, {"--prove", "1"}).err, HasSubstr("error[usage]"));
  EXPECT_THAT(plan(kJob, {"--prove-plans", "3"}).err, HasSubstr("error[usage]"));
  EXPECT_THAT(plan(kJob, {"--prove", "2", "--csv"}).err, HasSubstr("error[usage]"));
  const Finished many = plan(kJob, {"--prove", "4"});
  EXPECT_EQ(many.status, 2) << many;
  EXPECT_THAT(many.err,
              AllOf(HasSubstr("--prove 4: error[usage]: the job has 2 devices"), HasSubstr("legal: 2 to 2")));
  EXPECT_EQ(many.out, "");
}

// The best, and one that takes twice as long: their order is seen on a busy machine as well.
TEST_F(PlanCommand, ProvesByExecution) {
  const Finished f = plan(four(), {"--prove", "2", "--prove-plans", "2", "--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto proof = nlohmann::json::parse(f.out)["proof"];
  EXPECT_EQ(proof["devices"], 2);
  EXPECT_EQ(proof["batch"], 2);
  EXPECT_EQ(proof["spearman"], 1);
  EXPECT_EQ(proof["best_behind"], 0);
  ASSERT_EQ(proof["plans"].size(), 2);
  for (const auto& p : proof["plans"]) {
    EXPECT_GT(p["measured_ns"], 0.99 * p["simulated_ns"].get<double>()) << p;
    ASSERT_EQ(p["steps"].size(), 3);
    for (const auto& s : p["steps"]) {
      const double one = s["one_device"];
      EXPECT_NEAR(s["loss"], one, s["allowed"].get<double>() * one) << p;
    }
    EXPECT_NE(p["steps"][0]["loss"], p["steps"][2]["loss"]) << "it learns";
  }
  EXPECT_TRUE(workspace_.nothing_left());
}

}  // namespace
}  // namespace hyperrun::testing
