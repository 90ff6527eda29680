// Output of `hyperrun plan` for made-up answers.
#include "runtime/report/plan/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/report/describe_range.h"
#include "runtime/report/plan/refusal.h"
#include "runtime/report/plan/robust.h"
#include "runtime/report/status_line.h"
#include "tests/report/svg_text.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

SimulatedCandidate leader(std::int32_t data, double step, std::int64_t hbm) {
  SimulatedCandidate l;
  l.strategy[PlanAxis::kData] = data;
  l.simulated = step, l.forecast.time = step, l.hbm = Bytes(hbm);
  l.parts.compute = Nanos(static_cast<std::int64_t>(step));
  return l;
}

struct MadeUpAnswers {
  Job job = small_job("dp:4");
  Search search;
  PlanAnswers answers;

  MadeUpAnswers() : answers{.job = job, .space = spaces().front(), .search = search} {
    search.leaders = {leader(4, 1e6, 1 << 20), leader(4, 2e6, 1 << 20)};
    search.leaders.back().simulated = 0;
    search.leaders.back().why_not = "says \"no\", twice";
    search.least_bound = 0.9e6;
    answers.fusion = {
        {{"dp", 4, 1, {{"node", "supernode"}, 2}}},
        {{"dp", 4, {{"node"}, 2}, {{"all-reduce", Category::kGradients, Pass::kUpdate, 7, 4096, "w"}}}}};
    answers.front = {
        {{4, Bytes(1 << 20), leader(4, 1e6, 1 << 20), 0.1}, {8, Bytes(1 << 19), leader(8, 5e5, 1 << 19), 0}},
        {{.devices = 2, .needs = Bytes(3 << 20)},
         {.devices = 4, .fits = true},
         {.devices = 8, .fits = true},
         {.devices = 1},
         {.devices = 3, .divides = false},
         {.devices = 6, .meets_constraints = false}}};
    WhatIf slower{.figure = "bandwidth of the bus",
                  .factor = 0.5,
                  .present = leader(4, 2e6, 1),
                  .best = leader(2, 1e6, 1)};
    WhatIf refused{.figure = "room of HBM", .factor = 0.5, .present = {}, .best = leader(2, 1e6, 1)};
    answers.what_ifs = {{slower, refused}};
  }
};

TEST(PlanText, HasEveryAnswer) {
  const MadeUpAnswers a;
  const std::string fusion = fusion_text(a.answers.fusion), front = front_text(*a.answers.front),
                    what_if = what_if_text(*a.answers.what_ifs);
  EXPECT_THAT(fusion, HasSubstr("node or supernode"));
  EXPECT_THAT(fusion, HasSubstr("all-reduce  gradients  update"));
  EXPECT_THAT(front, HasSubstr("2 devices: nothing fits, it takes 3.00 MiB at least"));
  EXPECT_THAT(front, HasSubstr("  1 device: nothing fits\n"));
  EXPECT_THAT(front, HasSubstr("3 devices: no layout divides\n"));
  EXPECT_THAT(front, HasSubstr("6 devices: no strategy is as it should be\n"));
  EXPECT_THAT(what_if,
              HasSubstr("bandwidth of the bus x 0.5          2.00 ms         1.00 ms  2.000x  dp 2"));
  EXPECT_THAT(what_if, HasSubstr("does not fit"));
}

TEST(PlanText, ComparesTheJobsOwnParallelismWithTheBest) {
  const SimulatedCandidate best = leader(4, 1e6, 1 << 20);
  EXPECT_EQ(own_text({leader(2, 2e6, 1 << 20), true}, best),
            "as the job has it: 2.00 ms, 2.00x the first, MFU 0.0 %, HBM 1.00 MiB\n");
  SimulatedCandidate refused;
  refused.why_not = "needs more\nat the peak";
  EXPECT_EQ(own_text({refused, false}, best),
            "as the job has it (not a strategy of the space): needs more\n");
}

// More strategies may have been simulated than the user asked for.
TEST(PlanText, RanksAsManyAsRequested) {
  const MadeUpAnswers a;
  const std::string all = search_text(a.search, 2), one = search_text(a.search, 1);
  EXPECT_THAT(all, Not(HasSubstr("more, which")));
  EXPECT_THAT(one, HasSubstr("\nand 1 more, which --json and --csv have\n"));
  EXPECT_EQ(std::ranges::count(all, '\n'), std::ranges::count(one, '\n')) << "a row for a sentence";
  EXPECT_THAT(one, HasSubstr("\nrefused: dp 4")) << "in the ranking or not";
}

// They follow the certificate, which many of them would push out of sight. The most promising come first.
TEST(PlanText, TellsFewRefusals) {
  MadeUpAnswers a;
  a.search.leaders.pop_back();
  for (const std::int32_t data : {32, 16, 8, 4, 2}) {
    SimulatedCandidate& refused = a.search.leaders.emplace_back(leader(data, 0, 1));
    refused.forecast.time = data * 1e6, refused.why_not = "is too large";
  }
  a.search.leaders.back().forecast.time = 0;  // no forecast
  EXPECT_THAT(search_text(a.search, 1), HasSubstr(" fit)\n"
                                                  "refused: dp 4, 1 sequence a micro-batch: is too large\n"
                                                  "refused: dp 8, 1 sequence a micro-batch: is too large\n"
                                                  "refused: dp 16, 1 sequence a micro-batch: is too large\n"
                                                  "and 2 more were refused, which --json and --csv have\n"));
}

TEST(PlanText, CertifiesNothingOfAnInterruptedSearch) {
  MadeUpAnswers a;
  a.search.is_whole = false;
  a.answers.interrupted = "the search";
  EXPECT_THAT(search_text(a.search, 8), HasSubstr("\nthe search was not finished: nothing is certified\n"));
  const auto json = nlohmann::json::parse(plan_json(a.answers));
  EXPECT_EQ(json["interrupted"], "the search");
  EXPECT_TRUE(json["gap"].is_null());
}

TEST(PlanText, WithdrawsTheCertificateIfABoundFails) {
  MadeUpAnswers a;
  EXPECT_THAT(search_text(a.search, 8), HasSubstr("no strategy is more than 11.1 % faster than the first"));
  a.search.bounds_hold = false;
  EXPECT_THAT(search_text(a.search, 8), Not(HasSubstr("no strategy is more than")));
  const std::string svg = plan_svg({a.answers.job, a.answers.space, a.search});
  EXPECT_THAT(svg, AllOf(HasSubstr("nothing is certified"), Not(HasSubstr("no strategy is"))));
}

Robustness two_plans(std::vector<double> first, std::vector<double> second) {
  const Strategy a = leader(4, 1, 1).strategy, b = leader(2, 1, 1).strategy;
  const StepRange range{.step = Nanos(1'000'000), .fastest = Nanos(900'000), .slowest = Nanos(1'500'000)};
  return {{"all is as the profile has it", "device.pool.latency is 20 us", "one device slow"},
          {{a, range, std::move(first)}, {b, range, std::move(second)}},
          Simpler{1, 0.004, "it recomputes less"}};
}

TEST(PlanText, SaysWhetherTheFirstStaysFirst) {
  const std::string always = robust_text(two_plans({1e6, 2e6, 1e6}, {1.004e6, 2e6, 1e6}));
  EXPECT_THAT(always, HasSubstr("plan 1 is the fastest, or within 1 % of it, on all of them\n"));
  EXPECT_THAT(always,
              HasSubstr("plan 2 is simpler (it recomputes less) and takes 0.4 % more than the first\n"));
  const std::string depends = robust_text(two_plans({1e6, 1.9e6, kDoesNotFit}, {1.1e6, 1.2e6, 1.1e6}));
  EXPECT_THAT(depends,
              HasSubstr("which plan is best depends on what the machine is:\n"
                        "  plan 2 is faster where one device slow: 1.10 ms beside does not fit\n"
                        "  plan 2 is faster where device.pool.latency is 20 us: 1.20 ms beside 1.90 ms\n"
                        "plan 2 is never more than 10.0 % behind the best of these\n"));
  Robustness none = two_plans({1e6, kDoesNotFit, 1e6}, {1.004e6, kDoesNotFit, 1e6});
  none.least_hbm = 1024;
  EXPECT_THAT(robust_text(none),
              AllOf(HasSubstr("on all of them on which one of these plans fits\n"),
                    HasSubstr("none of these plans fits where device.pool.latency is 20 us; to plan for the "
                              "least HBM that there may be:\n  in supernode: hbm: \"1024 B\"\n"),
                    HasSubstr("may not fit")));
  EXPECT_EQ(robust_text({}), "");
}

TEST(PlanText, NamesTheGuessesThatMatter) {
  StepRange range{.machine = "h100",
                  .counts = {1, 2, 4},
                  .step = Nanos(1'000'000),
                  .fastest = Nanos(900'000),
                  .slowest = Nanos(1'500'000)};
  range.guesses = {{"device.products.ceiling", "device.products.ceiling", 0.8, 0.6, 0.9, "0.8", "0.6", "0.9",
                    "r", Nanos(1'400'000), Nanos(950'000)},
                   {"b", "none", 1, 1, 1, "1", "1", "1", "r", Nanos(1'000'000), Nanos(1'000'000)}};
  range.without_range = {"node.latency"};
  range.guesses.push_back({"reserve", "device.reserve", 4, 2, 6, "4 GiB", "2 GiB", "6 GiB", "r",
                           Nanos(1'000'000), Nanos(1'000'000), true, false});
  const std::string text = describe_range(range);
  EXPECT_THAT(
      text,
      HasSubstr("of the 7 figures of the profile h100, 1 is measured, 2 from data sheets, 4 guessed\n"));
  EXPECT_THAT(text, HasSubstr("the step is 1.00 ms, and 900 us to 1.50 ms where"));
  EXPECT_THAT(text, ContainsRegex("device.products.ceiling +0.8 +0.6 +1.40 ms +0.9 +950 us\n"));
  EXPECT_THAT(text, Not(HasSubstr("none"))) << "no step hangs on it";
  EXPECT_THAT(text, HasSubstr("it does not fit where device.reserve is 6 GiB\n"));
  EXPECT_THAT(text, HasSubstr("left as they are: node.latency\n"));
  EXPECT_EQ(describe_range({}), "") << "a machine without a profile";
}

// By its bound such a step may take less than half the time.
TEST(PlanText, TellsAUselessBound) {
  MadeUpAnswers a;
  a.search.least_bound = 0.3e6;
  EXPECT_THAT(search_text(a.search, 8), AllOf(HasSubstr("no useful bound"), Not(HasSubstr("233"))));
  a.answers.front->points.front().gap = 2.5;
  EXPECT_THAT(front_text(*a.answers.front), AllOf(HasSubstr("no useful bound"), Not(HasSubstr("250"))));
  EXPECT_THAT(plan_svg({a.answers.job, a.answers.space, a.search}), HasSubstr("no useful bound"));
}

// A program that reads `gap` alone gets no number without a certificate, and the same sentence as in the
// text.
TEST(PlanText, CertificatesAreEqualInAllFormats) {
  MadeUpAnswers a;
  a.answers.front->points.back().gap = 2.5;
  const auto json_of = [&] { return nlohmann::json::parse(plan_json(a.answers)); };
  const auto is_none = [](const nlohmann::json& of) {
    return of["gap"].is_null() && of["certified"] == false;
  };
  const auto certified = json_of();
  EXPECT_EQ(certified["certified"], true);
  EXPECT_NEAR(certified["gap"], 1 / 0.9 - 1, 1e-12);
  EXPECT_EQ(certified["certificate"], certificate_text(a.search));
  EXPECT_EQ(certified["front"]["points"][0]["gap"], 0.1);
  EXPECT_TRUE(is_none(certified["front"]["points"][1])) << certified;
  EXPECT_THAT(
      plan_csv(a.answers),
      AllOf(HasSubstr(",gap,certificate\n0,0,0,0,0,0.111111,\"" + certificate_text(a.search) + "\"\n"),
            HasSubstr("\n4,1048576,0.1,\"dp 4"), HasSubstr("\n8,524288,,\"dp 8")));
  a.search.least_bound = 0.3e6;
  EXPECT_TRUE(is_none(json_of())) << "no useful bound";
  EXPECT_THAT(plan_csv(a.answers), HasSubstr("\n0,0,0,0,0,,\"no useful bound"));
  a.search.least_bound = 0.9e6, a.search.bounds_hold = false;
  EXPECT_TRUE(is_none(json_of())) << "a bound that does not hold";
  EXPECT_THAT(plan_csv(a.answers), HasSubstr("\n0,0,0,0,0,,\"a step was shorter than its bound"));
}

// Bounds that are unknown or of another machine are left out.
TEST(PlanText, OmitsUnknownNumbers) {
  MadeUpAnswers a;
  a.search.leaders.front().forecast = {};
  EXPECT_THAT(plan_csv(a.answers), HasSubstr("\"dp 4, 1 sequence a micro-batch\",1000000,,,"));
  EXPECT_THAT(search_text(a.search, 8), Not(HasSubstr("-100")));
  EXPECT_FALSE(nlohmann::json::parse(plan_json(a.answers))["leaders"][0].contains("bound_ns"));
}

// Commas outside quotes.
std::int64_t commas(const std::string& line) {
  bool quoted = false;
  return std::ranges::count_if(line, [&](char c) {
    if (c == '"') quoted = !quoted;
    return c == ',' && !quoted;
  });
}

// Titles of all tables. Each table has a row, and each row as many fields as titles.
std::vector<std::string> titles_of_tables(const std::string& csv) {
  std::istringstream text(csv);
  std::vector<std::string> titles;
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.empty()) {
      EXPECT_GT(lines, 1U) << titles.back();
      lines = 0;
      continue;
    }
    if (lines++ == 0) titles.push_back(line);
    EXPECT_EQ(commas(line), commas(titles.back())) << line;
  }
  return titles;
}

// Two steps, the second of which has diverged.
Proof proof_of(const SimulatedCandidate& leader) {
  ProvenPlan plan{leader, {}, {}, {2.5, NAN}, {{2.25, 1e-5}, {2, 1e-5}}};
  plan.executed.hidden = 64, plan.paced.dilation = 12.5, plan.paced.measured = Nanos(1010000);
  Proof proof;
  proof.world.supernode.devices = 2, proof.correlation = 1;
  proof.plans = {plan};
  return proof;
}

// Every answer that a user can ask for.
struct Everything : MadeUpAnswers {
  Everything() {
    answers.own = OwnStrategy{leader(2, 2e6, 1 << 20), true};
    answers.why = {{.key = "tp", .dimension = "tensor", .value = "1", .sentence = "chosen: 1.00 ms"},
                   {.key = "tp", .dimension = "tensor", .value = "2", .sentence = "no, \"never\""}};
    answers.why.front().chosen = true;
    answers.why.front().strategy = search.leaders.front().strategy;
    answers.why.front().simulated = 1e6;
    answers.others = {{"megatron", leader(4, 2e6, 1 << 20)}, {"deepspeed", {}, true}};
    answers.proof = proof_of(search.leaders.front());
  }
};

TEST(PlanText, EachAnswerHasATable) {
  const Everything a;
  const std::vector<std::string> titles = titles_of_tables(plan_csv(a.answers));
  ASSERT_EQ(titles.size(), 13U);
  const std::vector<const char*> begins{"strategy,step_ns,",
                                        "strategies,",
                                        "own_in_space,step_ns,",
                                        "axis,devices,ranks_apart,lies_in,",
                                        "axes,devices,lies_in,",
                                        "key,dimension,value,chosen,",
                                        "devices,budget_bytes,gap,",
                                        "devices,fits,divides,is_meant,needs_bytes",
                                        "figure,factor,present_ns,gain,",
                                        "devices,layers,batch,",
                                        "strategy,forecast_ns,simulated_ns,measured_ns,",
                                        "strategy,step,loss,one_device,allowed",
                                        "space,strategy,"};
  for (std::size_t i = 0; i < begins.size(); ++i) EXPECT_EQ(titles[i].find(begins[i]), 0U) << titles[i];
}

TEST(PlanText, TablesHaveTheNumbersOfTheJson) {
  const Everything a;
  const std::string csv = plan_csv(a.answers), best = "\"dp 4, 1 sequence a micro-batch\"";
  for (const std::string line :
       {"true,2000000,0,1048576,0,2000000,0,0,0,0,0,0,", "dp,4,1,\"node or supernode\",2",
        "dp,4,node,2,all-reduce,gradients,update,7,4096,w"})
    EXPECT_THAT(csv, HasSubstr("\n" + line + "\n"));
  EXPECT_THAT(csv, HasSubstr("\ntp,tensor,1,true," + best + ",1000000,,,\"chosen: 1.00 ms\"\n"));
  EXPECT_THAT(csv, HasSubstr("\ntp,tensor,2,false,,,,,\"no, \"\"never\"\"\"\n"));
  EXPECT_THAT(csv, HasSubstr("\n2,false,true,true,3145728\n4,true,true,true,0\n"));
  EXPECT_THAT(csv, HasSubstr("\n\"bandwidth of the bus\",0.5,2000000,2,\"dp 2,"));
  EXPECT_THAT(csv, HasSubstr("\n\"room of HBM\",0.5,,,\"dp 2,")) << "there is nothing to compare";
  EXPECT_THAT(csv, HasSubstr("\n" + best + ",1000000,1000000,1010000,12.5,64,"));
  EXPECT_THAT(csv, HasSubstr("\n" + best + ",1,2.5,2.25,1e-05\n" + best + ",2,nan,2,1e-05\n"));
  const auto json = nlohmann::json::parse(plan_json(a.answers));
  EXPECT_EQ(json["own"]["step_ns"], 2e6);
  EXPECT_EQ(json["why"][0]["step_ns"], 1e6);
  EXPECT_EQ(json["why"][1]["sentence"], "no, \"never\"");
  EXPECT_TRUE(json["what_ifs"][1]["gain"].is_null());
  EXPECT_EQ(json["comparison"][0]["gain"], 2);
}

TEST(PlanText, JsonHasEveryAnswer) {
  const MadeUpAnswers a;
  const auto json = nlohmann::json::parse(plan_json(a.answers));
  EXPECT_EQ(json["leaders"][1]["refused"], "says \"no\", twice");
  EXPECT_EQ(json["fusion"]["groups"][0]["uses"][0]["bytes"], 4096);
  EXPECT_EQ(json["front"]["points"][1]["devices"], 8);
  EXPECT_EQ(json["front"]["devices"][0]["fits"], false);
  EXPECT_EQ(json["what_ifs"][0]["gain"], 2.0);
}

TEST(PlanText, PictureHasTheLeadersAndALineForEachNumberOfDevices) {
  const MadeUpAnswers a;
  const std::string svg = plan_svg(a.answers);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"step\""), 1U) << "what was refused has no bar";
  EXPECT_THAT(svg, HasSubstr(">4 devices</text>"));
  EXPECT_THAT(svg, HasSubstr(">8 devices</text>"));
  EXPECT_THAT(svg, HasSubstr(certificate_text(a.search))) << "what it leaves out as well";
}

// Standard error is a file here, as in a batch system.
TEST(StatusLine, WritesNowAndThenWithoutATerminal) {
  const auto told = [](std::chrono::milliseconds between) {
    ::testing::internal::CaptureStderr();
    StatusLine line(between);
    line.tell("first"), line.tell("second");
    line.clear();
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told(std::chrono::milliseconds(0)), "first (0 s)\nsecond (0 s)\n");
  EXPECT_EQ(told(std::chrono::hours(1)), "") << "of short work";
}

// Long work may have nothing new to report, so the last message is repeated.
TEST(StatusLine, RepeatsTheLastMessage) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  std::string told;
  {
    StatusLine line(std::chrono::milliseconds(1));
    line.tell("long");
    for (char c = 0; std::ranges::count(told, '\n') < 2 && read(ends[0], &c, 1) == 1;) told += c;
  }
  dup2(before, STDERR_FILENO);
  for (const int fd : {before, ends[0], ends[1]}) close(fd);
  EXPECT_THAT(told, ::testing::MatchesRegex("long \\([0-9]+ s\\)\nlong \\([0-9]+ s\\)\n"));
}

TEST(PlanRefusal, TellsWhatIsMissingAndARemedy) {
  Job job = small_job("dp:4");
  job.supernode.hbm = Bytes(1 << 10);
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).smallest.front().expected.value * 3 / 4);
  const Search s = search(job, {.leaders = 1});
  ASSERT_FALSE(s.found());
  StatusLine status;
  const Error e = nothing_feasible(job, spaces().front(), s, status);
  EXPECT_EQ(e.code(), Code::kDoesNotFit);
  EXPECT_THAT(e.legal(), HasSubstr(" B\" or more, "));
  EXPECT_THAT(e.remedy(), HasSubstr("raise supernode.hbm by"));
  EXPECT_THAT(e.remedy(), HasSubstr("take 8 devices: "));
}

// Devices share the pool, so a remedy with more devices states the pool if it needs one.
TEST(PlanRefusal, TellsThePoolOfMoreDevices) {
  Job job = small_job("dp:4");
  job.supernode.hbm = Bytes(1 << 10);
  job.supernode.hbm = Bytes(search(job, {.leaders = 1}).smallest.front().expected.value * 3 / 8);
  job.supernode.pool = Bytes(192 << 10);
  Space space = spaces().front();
  space.only = {constraint_of("dp=1,2")};
  const Search s = search(job, {.space = &space, .leaders = 1});
  ASSERT_FALSE(s.found());
  StatusLine status;
  EXPECT_THAT(nothing_feasible(job, space, s, status).remedy(),
              HasSubstr("take 16 devices with supernode.pool \"786432 B\": "));
}

TEST(PlanRefusal, NamesDeviceCountsThatDivide) {
  Job job = small_job("dp:4");
  job.supernode.devices = 7;
  job.training.batch = 4;
  const Search s = search(job, {.leaders = 1});
  StatusLine status;
  const Error e = nothing_feasible(job, spaces().front(), s, status);
  EXPECT_EQ(e.code(), Code::kBadLayout);
  EXPECT_THAT(e.cause(), HasSubstr("7 devices"));
  EXPECT_THAT(e.legal(), HasSubstr("8"));
  EXPECT_THAT(e.what(), Not(HasSubstr("internal")));
}

}  // namespace
}  // namespace hyperrun::testing
