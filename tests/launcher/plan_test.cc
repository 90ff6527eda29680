// hyperrun plan, as a user calls it.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/report/file.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Four devices, whose layouts differ much in time.
std::string four() { return edited(kJob, {{"devices: 2", "devices: 4"}, {"size: 2", "size: 4"}}); }

// One device, and one sequence in a step.
std::string alone(const std::string& memory, const std::string& model, const std::string& training = "") {
  return edited(kJob, {{"devices: 2 hbm: \"16 MiB\"", "devices: 1 " + memory},
                       {"layers: 2 hidden: 64 heads: 4 kv_heads: 2 vocab: 320 sequence: 32", model},
                       {"size: 2", "size: 1"},
                       {"batch: 8", "batch: 1 " + training}});
}

class PlanCommand : public ::testing::Test {
 protected:
  Finished plan(const std::string& job, const std::vector<std::string>& options = {}) const {
    return workspace_.run_on_job("plan", job, options, Seconds(200));
  }

  Workspace workspace_;
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) list.push_back(line);
  return list;
}

// Number of columns of a line of CSV, with quotes around whole fields.
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

// The plan's figures are those of its job, to the byte and the nanosecond, if the job is compiled anew, on
// devices that are all alike.
TEST_F(PlanCommand, WritesAJobThatTakesWhatWasSaid) {
  const std::string beyond = edited(kJob, {{"16 MiB\"", "1100 KiB\" pool: \"1 GiB\""}});
  for (const std::string& job : {four(), beyond}) {
    const Finished f = plan(job, {"--only", "pp=1", "--leaders", "1", "--json", "--out", "best.textproto"});
    ASSERT_THAT(f, Succeeded()) << f;
    const auto best = nlohmann::json::parse(f.out)["leaders"][0];
    const Finished s = workspace_.run(hyperrun({"sim", "best.textproto", "--json"}));
    ASSERT_THAT(s, Succeeded()) << s;
    const auto run = nlohmann::json::parse(s.out);
    EXPECT_EQ(run["totals"]["hbm_peak_bytes"], best["hbm_bytes"]);
    EXPECT_EQ(run["time_ns"], best["step_ns"].get<double>() * run["totals"]["steps"].get<double>());
    std::int64_t pool = 0;
    for (const auto& device : run["devices"])
      for (const auto& tier : device["memory"])
        if (tier["tier"] == "pool") pool += tier["executed_peak_bytes"].get<std::int64_t>();
    EXPECT_EQ(pool, best["pool_bytes"]);
    EXPECT_EQ(pool > 0, job == beyond);
  }
}

// With two stages of one layer each the executed model to scale can no longer be one layer of two.
TEST_F(PlanCommand, WritesAScaleThatDividesTheNewStages) {
  const std::string run = "clock: \"paced\" shrink { depth: 2 sequence: 2 }";
  const std::string job = edited(four(), {{"run {", "run { " + run}});
  const Finished f = plan(job, {"--only", "pp=2", "--only", "schedule=1f1b", "--out", "best.textproto"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(workspace_.run(hyperrun({"check", "best.textproto"})), Succeeded());
}

// With the largest number of leaders it ends when there is nothing left to simulate, which takes a second or
// two. A search for the next one per possible leader would take more than two minutes.
TEST_F(PlanCommand, SimulatesNoMoreThanThereIs) {
  const std::vector<std::string> words{"plan", workspace_.job(kJob), "--leaders", "1048576", "--json"};
  const Finished f = workspace_.run(hyperrun(words), Seconds(60));
  ASSERT_THAT(f, Succeeded()) << f;
  const auto json = nlohmann::json::parse(f.out);
  EXPECT_EQ(json["leaders"].size(), json["forecast"].get<std::size_t>());
}

// A strategy without an axis has the field too: readers ask each strategy for its axes.
TEST_F(PlanCommand, HasAMeshOfEachStrategy) {
  const std::string small = "layers: 2 hidden: 64 heads: 4 kv_heads: 2 vocab: 320 sequence: 32";
  const Finished f = plan(alone("hbm: \"16 MiB\"", small), {"--leaders", "1", "--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto best = nlohmann::json::parse(f.out)["leaders"][0];
  EXPECT_EQ(best.value("mesh", nlohmann::json()), nlohmann::json::object());
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
  const std::size_t ranked = json["leaders"].size() + 1;  // with its titles
  ASSERT_GE(csv.size(), ranked + 3) << c;
  for (std::size_t i = 0; i < ranked; ++i) EXPECT_EQ(columns(csv[i]), columns(csv[0])) << csv[i];
  EXPECT_THAT(csv[1], HasSubstr(json["leaders"][0]["strategy"].get<std::string>()));
  EXPECT_EQ(csv[ranked], "");
  EXPECT_THAT(csv[ranked + 2], HasSubstr(json["certificate"].get<std::string>()));
  EXPECT_THAT(c.out, AllOf(HasSubstr("\nown_in_space,"), HasSubstr("\naxis,"), HasSubstr("\naxes,"),
                           Not(HasSubstr("\nkey,"))));
}

TEST_F(PlanCommand, RefusesWithPlaceAndRemedy) {
  const Finished space = plan(kJob, {"--space", "everything"});
  EXPECT_EQ(space.status, 2) << space;
  EXPECT_THAT(space.err,
              AllOf(HasSubstr("--space: error[usage]"), HasSubstr("legal: all, megatron, deepspeed")));
  const Finished full = plan(edited(kJob, {{"16 MiB", "64 KiB"}}));
  EXPECT_EQ(full.status, 4) << full;
  EXPECT_THAT(
      full.err,
      AllOf(HasSubstr("job.textproto:2:24: error[does-not-fit]"), HasSubstr("; the nearest, by its bound: "),
            HasSubstr("the least that was found to do"), HasSubstr("fix: raise supernode.hbm")));
  const Finished trains = plan(edited(kJob, {{"steps: 6", "steps: 0"}}));
  EXPECT_EQ(trains.status, 3) << trains;
  EXPECT_THAT(plan(kJob, {"--svg", "plan.png"}).err, HasSubstr("--svg plan.png: error[usage]"));
  EXPECT_THAT(plan(kJob, {"--prove", "1"}).err, HasSubstr("error[usage]"));
  EXPECT_THAT(plan(kJob, {"--prove-plans", "3"}).err, HasSubstr("error[usage]"));
  const Finished many = plan(kJob, {"--prove", "4"});
  EXPECT_EQ(many.status, 2) << many;
  EXPECT_THAT(many.err,
              AllOf(HasSubstr("--prove 4: error[usage]: the job has 2 devices"), HasSubstr("legal: 2 to 2")));
  EXPECT_EQ(many.out, "");
  const Finished before = plan(edited(kJob, {{"16 MiB", "64 KiB"}}), {"--prove", "4"});
  EXPECT_THAT(before.err, HasSubstr("--prove 4: error[usage]")) << "before anything is searched";
}

// 65,536 passes through a layer are simulated, 8,192 if transfers are planned. The error names the batch with
// so many, and a job with transfers is planned with it.
TEST_F(PlanCommand, RefusesWhatIsTooLargeToBeSimulated) {
  const std::vector<std::string> small{"--only", "samples=1", "--leaders", "1"};
  const Finished large = plan(edited(kJob, {{"batch: 8", "batch: 131072"}}), small);
  EXPECT_EQ(large.status, 4) << large;
  EXPECT_EQ(large.out, "");
  EXPECT_THAT(
      large.err,
      AllOf(HasSubstr("job.textproto:6:21: error[does-not-fit]"),
            HasSubstr("too large to be simulated: 65,536 micro-batches through 2 layers, up to 65,536 "
                      "passes through a layer are"),
            HasSubstr("legal: at most 65536 under this strategy"), HasSubstr("fix: plan a smaller")));
  const auto moved = [&](const std::string& batch) {
    return plan(edited(kJob, {{"batch: 8", "batch: " + batch}, {"16 MiB\"", "1100 KiB\" pool: \"1 GiB\""}}),
                small);
  };
  const Finished much = moved("32768");
  EXPECT_EQ(much.status, 4) << much;
  EXPECT_THAT(much.err, AllOf(HasSubstr("up to 8,192 passes"), HasSubstr("legal: at most 4096 under this"),
                              HasSubstr("hyperoffload")));
  EXPECT_THAT(moved("4096"), Succeeded());
}

// The remedy works, and does not depend on the present setting.
TEST_F(PlanCommand, TheHbmThatWouldDoCanBeTyped) {
  const Finished full = plan(edited(kJob, {{"16 MiB", "64 KiB"}}));
  const std::string start = "legal: \"";
  const std::size_t at = full.err.find(start);
  ASSERT_NE(at, std::string::npos) << full;
  const std::int64_t bytes = std::stoll(full.err.substr(at + start.size()));
  EXPECT_THAT(plan(edited(kJob, {{"16 MiB", std::to_string(bytes) + " B"}})), Succeeded());
  const Finished less = plan(edited(kJob, {{"16 MiB", std::to_string(bytes / 2) + " B"}}));
  EXPECT_EQ(less.status, 4) << less;
  EXPECT_THAT(less.err, HasSubstr(start + std::to_string(bytes)));
}

TEST_F(PlanCommand, SearchesWhatIsWanted) {
  const auto json_of = [&](const std::vector<std::string>& options) {
    std::vector<std::string> all{"--json"};
    all.insert(all.end(), options.begin(), options.end());
    const Finished f = plan(four(), all);
    EXPECT_THAT(f, Succeeded()) << f;
    return nlohmann::json::parse(f.out);
  };
  const auto every = json_of({});
  const auto some = json_of({"--only", "dp=2", "--only", "recompute=selective,full", "--only", "zero=1"});
  EXPECT_LT(some["strategies"], every["strategies"]);
  for (const auto& l : some["leaders"]) {
    EXPECT_EQ(l["mesh"]["dp"], 2) << l;
    EXPECT_THAT(l["strategy"].get<std::string>(), AllOf(HasSubstr("zero1"), HasSubstr("recompute"))) << l;
  }
  for (const auto& l : json_of({"--only", "innermost=dp", "--only", "tp=2"})["leaders"])
    EXPECT_THAT(l["strategy"].get<std::string>(), HasSubstr("tp 2 x dp 2")) << l;
}

TEST_F(PlanCommand, SaysWhatContradictsItself) {
  const Finished none = plan(kJob, {"--only", "tp=3"});
  EXPECT_EQ(none.status, 2) << none;
  EXPECT_THAT(none.err, AllOf(HasSubstr("--only tp=3: error[usage]"), HasSubstr("legal: tp=1, 2")));
  const Finished both = plan(kJob, {"--only", "tp=2", "--only", "dp=2"});
  EXPECT_THAT(both.err, AllOf(HasSubstr("tp=1"), HasSubstr("dp=1"), HasSubstr("beside the others")));
  const Finished inner = plan(kJob, {"--only", "innermost=tp", "--only", "tp=1"});
  EXPECT_THAT(inner.err,
              AllOf(HasSubstr("legal: innermost=pp, dp"), HasSubstr("; or tp=2 beside the others")))
      << "an axis of one device is not innermost";
  EXPECT_THAT(plan(kJob, {"--only", "innermost=none"}).err, HasSubstr("legal: innermost=pp, dp"));
  EXPECT_THAT(plan(four(), {"--only", "tp=4", "--only", "tp=2"}).err,
              HasSubstr("write --only tp=4,2 for either"));
  EXPECT_THAT(plan(kJob, {"--only", "experts=etp"}).err,
              HasSubstr("fix: leave it out: the model has no experts"));
  EXPECT_THAT(plan(kJob, {"--only", "depth=3"}).err, HasSubstr("legal: pp, dp, ep, ring"));
  EXPECT_THAT(plan(kJob, {"--only", "schedule=2f2b"}).err, HasSubstr("legal: none, gpipe, 1f1b"));
  for (const char* text : {"tp", "tp=", "tp=2,"})
    EXPECT_THAT(plan(kJob, {"--only", text}).err,
                AllOf(HasSubstr("a value of \"tp\" is missing"), HasSubstr("fix: write tp=VALUE[,VALUE...]")))
        << text;
  const Finished moved = plan(kJob, {"--only", "memory=hyperoffload"});
  EXPECT_EQ(moved.status, 2) << "all fit without";
  EXPECT_THAT(moved.err, HasSubstr("legal: memory=none"));
}

// A job that would fit only with transfers does not fit without them: that is no contradiction of the
// constraint.
TEST_F(PlanCommand, WithoutTransfersThePoolHoldsNothing) {
  const std::string beyond = edited(kJob, {{"16 MiB\"", "1100 KiB\" pool: \"1 GiB\""}});
  ASSERT_THAT(plan(beyond, {"--leaders", "1"}), Succeeded());
  const Finished f = plan(beyond, {"--only", "memory=none"});
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[does-not-fit]"), HasSubstr("B\" or more"),
                           HasSubstr("with --only memory=none"), Not(HasSubstr("pool"))));
}

// Tensors would move if there were room for them: its absence is no contradiction.
TEST_F(PlanCommand, APoolThatIsMuchTooSmallIsNamedAsWhatIsMissing) {
  const std::string job = alone(R"(hbm: "2701809 B" pool: "900000 B")",
                                "layers: 4 hidden: 64 heads: 8 kv_heads: 4 vocab: 512 sequence: 256");
  const Finished f = plan(job, {"--only", "memory=hyperoffload", "--only", "recompute=none"});
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("error[does-not-fit]"), HasSubstr("a pool of 879 KiB"),
                           HasSubstr("raise supernode.pool to")));
}

// If all strategies fit without transfers none needs them, but a user who asks gets them.
TEST_F(PlanCommand, SearchesSomeLayersThatRecomputeWhereTheyAreWanted) {
  const Finished f = plan(kJob, {"--only", "recompute=none to selective", "--leaders", "2", "--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto json = nlohmann::json::parse(f.out);
  EXPECT_GT(json["strategies"], 0);
  for (const auto& l : json["leaders"])
    EXPECT_THAT(l["strategy"].get<std::string>(), HasSubstr("selective in 1 layer of a device"));
}

double first_step(const nlohmann::json& json) { return json["leaders"][0]["step_ns"].get<double>(); }

// One leader is not the best of the results of other spaces and of the front: the best leads then, and is
// written. Planned again, it is the job's own.
TEST_F(PlanCommand, WhatIsFoundFasterLeads) {
  const std::string quickstart = HYPERRUN_SOURCE_DIR "/examples/quickstart.textproto";
  const auto planned = [&](const std::string& job, std::vector<std::string> options) {
    options.insert(options.begin(), {"plan", job, "--leaders", "1", "--json"});
    const Finished f = workspace_.run(hyperrun(options), Seconds(200));
    EXPECT_THAT(f, Succeeded()) << f;
    return nlohmann::json::parse(f.out);
  };
  const double alone = first_step(planned(quickstart, {}));
  const auto compared = planned(quickstart, {"--compare", "--out", "best.textproto"});
  const double best = first_step(compared);
  EXPECT_LT(best, alone);
  ASSERT_EQ(compared["comparison"].size(), 2U);
  for (const auto& other : compared["comparison"]) EXPECT_GE(other["step_ns"], best);
  const auto front = planned(quickstart, {"--only", "recompute=full", "--pareto-devices", "4"});
  EXPECT_LT(first_step(front), first_step(planned(quickstart, {"--only", "recompute=full"})));
  EXPECT_EQ(first_step(front), front["front"]["points"][0]["step_ns"]);
  const auto again = planned((workspace_ / "best.textproto").string(), {});
  EXPECT_EQ(first_step(again), best);
  EXPECT_EQ(again["own"]["step_ns"], best);
}

TEST_F(PlanCommand, SpacesThatMoveNothingSaySo) {
  const std::string job = edited(kJob, {{"16 MiB\"", "1100 KiB\" pool: \"1 GiB\""}});
  const std::vector<std::string> moved{"--only", "memory=hyperoffload", "--leaders", "1", "--compare"};
  EXPECT_THAT(plan(job, moved).out, ContainsRegex("megatron +cannot express it"));
  const Finished f = plan(job, {"--only", "memory=hyperoffload", "--space", "megatron"});
  EXPECT_EQ(f.status, 2) << f;
  EXPECT_THAT(f.err, HasSubstr("in the space \"megatron\" tensors stay in HBM"));
}

// One device has a layout, but not the requested one.
TEST_F(PlanCommand, TheFrontBlamesConstraintsForWhatDivides) {
  const Finished f = plan(kJob, {"--only", "dp=2", "--leaders", "1", "--pareto-devices", "1"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, HasSubstr("\n  1 device: no strategy is as it should be\n"));
}

// Additional recomputation in some layers moves nothing: a pool is no remedy.
TEST_F(PlanCommand, APoolIsNoRemedyForWhatMovesNothing) {
  const std::string job = alone(R"(hbm: "10380928 B" pool: "4280289 B")",
                                "layers: 8 hidden: 64 heads: 8 kv_heads: 8 vocab: 4096 sequence: 32",
                                R"(precision: "bfloat16" clip_norm: 0)");
  const Finished f = plan(job, {"--only", "recompute=selective to full"});
  EXPECT_EQ(f.status, 4) << f;
  EXPECT_THAT(f.err, AllOf(HasSubstr("raise supernode.hbm"), Not(HasSubstr("raise supernode.pool"))));
}

// A strategy of our search that another space has as well belongs to that space, too: no gain is reported.
TEST_F(PlanCommand, ComparesWithWhatIsFoundOfEither) {
  const std::string job = R"(supernode { devices: 8 profile: "matrix384" }
                             model { layers: 16 hidden: 2048 heads: 16 kv_heads: 4 ffn: 8192 vocab: 32000
                               sequence: 2048 }
                             data { corpus: "none.txt" }
                             training { steps: 1 batch: 32 lr: 1e-4 precision: "bfloat16" })";
  const Finished f = plan(job, {"--leaders", "2", "--compare", "--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto answer = nlohmann::json::parse(f.out);
  EXPECT_EQ(answer["leaders"][0]["strategy"], "dp 8, zero1, 4 sequences a micro-batch");
  for (const auto& other : answer["comparison"]) EXPECT_EQ(other["gain"], 1) << other;
}

TEST_F(PlanCommand, ComparesWithWhatOtherSpacesCannotExpress) {
  const Finished f = plan(four(), {"--only", "ring=2", "--leaders", "1", "--compare"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, ContainsRegex("deepspeed +cannot express it"));
  const Finished c = plan(four(), {"--only", "ring=2", "--leaders", "1", "--compare", "--csv"});
  const std::vector<std::string> csv = lines(c.out);
  EXPECT_EQ(columns(csv.back()), columns(*(csv.end() - 2))) << c;
  EXPECT_THAT(c.out, ContainsRegex("\nspace,strategy,.*,refused,gain\n"));
  EXPECT_THAT(csv.back(), AllOf(HasSubstr("deepspeed,"), HasSubstr("\"cannot express it\""))) << c;
}

// A job that is executed to scale can be planned: it needs no parallelism for that.
TEST_F(PlanCommand, PlansWhatIsShrunk) {
  const std::size_t begin = kJob.find("parallel"), end = kJob.find("data {");
  const std::string scaled = R"(directory: "out" clock: "paced" shrink { sequence: 2 })";
  const Finished f = plan(edited(kJob.substr(0, begin) + kJob.substr(end), {{R"(directory: "out")", scaled}}),
                          {"--leaders", "1"});
  EXPECT_THAT(f, Succeeded()) << f;
}

// A strategy that is not simulated says so.
TEST_F(PlanCommand, SaysWhyByTheSimulator) {
  const Finished f = plan(four(), {"--why", "--leaders", "1"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, AllOf(HasSubstr("tensor (tp)"), HasSubstr("(innermost)"), HasSubstr("chosen: "),
                           Not(ContainsRegex("\n  [^ ]+ +forecast "))));
}

// The same alternatives are simulated for every format of the output.
TEST_F(PlanCommand, SaysWhyInJsonAndCsvAsWell) {
  const Finished text = plan(four(), {"--why", "--leaders", "1"});
  const Finished j = plan(four(), {"--why", "--leaders", "1", "--json"});
  const Finished c = plan(four(), {"--why", "--leaders", "1", "--csv"});
  ASSERT_THAT(j, Succeeded()) << j;
  ASSERT_THAT(c, Succeeded()) << c;
  const auto json = nlohmann::json::parse(j.out);
  EXPECT_GT(json["why"].size(), 10U);
  std::size_t simulated = 0;
  for (const auto& v : json["why"]) {
    const std::string sentence = v["sentence"];
    EXPECT_THAT(text.out, HasSubstr(sentence));
    EXPECT_THAT(c.out, HasSubstr(sentence));
    EXPECT_TRUE(!v.contains("step_ns") || v.contains("strategy")) << v;
    simulated += !v["chosen"].get<bool>() && v.contains("step_ns");
  }
  EXPECT_GT(simulated, 3U) << "more than one leader";
}

// The strategy with the best bound may be refused: then the ones that fit are reported, and refused ones do
// not count as simulated.
TEST_F(PlanCommand, SaysWhyOfWhatFits) {
  const std::string job = edited(four(), {{"16 MiB", "4700 KiB"},
                                          {"hidden: 64", "hidden: 128"},
                                          {"vocab: 320 sequence: 32", "vocab: 512 sequence: 128"},
                                          {"batch: 8", "batch: 4"}});
  const Finished f = plan(job, {"--why"});
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.out, Not(HasSubstr(" at least ")));
  EXPECT_THAT(f.out, ContainsRegex("zero_bubble +[0-9.]+ [mu]s, \\+"));
  std::int64_t told = 0;  // strategies in the ranking with a step
  for (const std::string& line : lines(f.out.substr(0, f.out.find("\nno strategy is more"))))
    told += line.find(" micro-batch") != std::string::npos && line.find("refused") == std::string::npos;
  EXPECT_GE(told, 8);
  EXPECT_THAT(f.out, HasSubstr(" forecast, " + std::to_string(told) + " simulated\n"));
  EXPECT_THAT(f.out, HasSubstr("\nrefused: "));
}

TEST_F(PlanCommand, WritesOverNothingButPlans) {
  workspace_.job("# proto-file: proto/job.proto\n" + kJob, "mine.textproto");
  EXPECT_THAT(plan(kJob, {"--out", "mine.textproto"}).err, HasSubstr("is there already, and no plan"));
  EXPECT_THAT(plan(kJob, {"--out", "job.textproto"}).err, HasSubstr("is the job that is planned"));
  const Finished data = plan(kJob, {"--out", "corpus.txt"});
  EXPECT_EQ(data.status, 2) << data;
  EXPECT_THAT(data.err, AllOf(HasSubstr("--out corpus.txt: error[usage]: is there already, and no plan"),
                              HasSubstr("legal: a new file")));
  EXPECT_THAT(plan(kJob, {"--out", "a.svg", "--svg", "./a.svg"}).err, HasSubstr("is where --svg draws"));
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(plan(kJob, {"--leaders", "1", "--out", "best.textproto"}), Succeeded()) << again;
  const std::string best = workspace_.job(kJob, "job.svg");
  const Finished picture = workspace_.run(hyperrun({"plan", best, "--svg", "job.svg"}));
  EXPECT_EQ(picture.status, 2) << picture;
  EXPECT_THAT(picture.err, HasSubstr("--svg job.svg: error[usage]: is the job that is planned"));
}

// A file must not replace something else; a link leads to the file.
TEST_F(PlanCommand, WritesFilesAlone) {
  namespace fs = std::filesystem;
  ASSERT_EQ(::mkfifo((workspace_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", workspace_ / "pipe.svg");
  for (const auto& [option, name] : {std::pair{"--out", "pipe"}, {"--svg", "pipe.svg"}}) {
    const Finished pipe = plan(kJob, {option, name});
    EXPECT_EQ(pipe.status, 7) << pipe;
    EXPECT_THAT(pipe.err,
                HasSubstr(std::string(name) + ": error[unwritable]: is no file, and one would take"));
    EXPECT_TRUE(fs::is_fifo(workspace_ / name));
  }
  fs::create_directory(workspace_ / "folder");
  const Finished folder = plan(kJob, {"--out", "folder"});
  EXPECT_EQ(folder.status, 7) << folder;
  EXPECT_THAT(folder.err, HasSubstr("--out folder: error[unwritable]: is a folder"));
  put_file(workspace_ / "folder/best.textproto", "");
  fs::create_symlink("folder/best.textproto", workspace_ / "link");
  EXPECT_THAT(plan(kJob, {"--leaders", "1", "--out", "link"}), Succeeded());
  EXPECT_TRUE(fs::is_symlink(workspace_ / "link"));
  EXPECT_GT(fs::file_size(workspace_ / "folder/best.textproto"), 0U);
  fs::create_symlink("loop", workspace_ / "loop");
  EXPECT_EQ(plan(kJob, {"--out", "loop"}).status, 7);
  EXPECT_EQ(plan(kJob, {"--out", std::string(300, 'a')}).status, 7) << "a name that is too long";
}

// The heading is there once, even if the planned job had one.
TEST_F(PlanCommand, WritesOneHeading) {
  ASSERT_THAT(plan(kJob, {"--leaders", "1", "--out", "best.textproto"}), Succeeded());
  const std::string once = read_whole_file(workspace_ / "best.textproto");
  EXPECT_EQ(occurrences(once, "# proto-file: "), 1);
  EXPECT_EQ(occurrences(once, "# proto-message: "), 1);
  ASSERT_THAT(plan(once, {"--leaders", "1", "--out", "best.textproto"}), Succeeded());
  EXPECT_EQ(read_whole_file(workspace_ / "best.textproto"), once);
}

// Each refusal has its place, the alternatives and the next step.
TEST_F(PlanCommand, AnswersWhatIsTypedWrong) {
  struct Case {
    std::vector<std::string> options;
    std::string cause, legal, fix;
  };
  const std::string help = "hyperrun plan --help shows its options and examples";
  const std::string devices = "legal: 1 to 1048576, several with commas between";
  const std::string leaders = "legal: 1 to 1048576", ranks = "legal: 2 to 1024";
  const std::string any = "legal: any that is not empty, and no option";
  const std::vector<Case> cases{
      {{"--without", "tp"}, "error[usage]: not expected: --without tp", "legal: job, --help, --space", help},
      {{"--leader", "3"}, "error[usage]: not expected: --leader 3", "--leaders", "did you mean --leaders?"},
      {{"--pareto_devices=4"}, "not expected: --pareto_devices=4", "", "did you mean --pareto-devices?"},
      {{"again.textproto"}, "not expected: again.textproto", "legal: job, ", help},
      {{"--leaders", "0"}, "--leaders: error[usage]: 0 is less than 1", leaders, help},
      {{"--leaders", "-3"}, "--leaders: error[usage]: -3 is less than 1", leaders, help},
      {{"--leaders", "2000000"}, "--leaders: error[usage]: 2000000 is more than 1048576", leaders, help},
      {{"--leaders", "99999999999"}, "99999999999 is more than 1048576", leaders, help},
      {{"--leaders", "many"}, "--leaders: error[usage]: \"many\" is no whole number", leaders, help},
      {{"--leaders", ""}, "--leaders: error[usage]: \"\" is no whole number", leaders, help},
      {{"--leaders"}, "--leaders: error[usage]: a value is missing", leaders, help},
      {{"--leaders", "--json"}, "\"--json\" is no whole number", leaders, help},
      {{"--leaders", "2", "--leaders", "3"}, "--leaders: error[usage]: it is given 2 times", leaders, help},
      {{"--prove", "3.5"}, "--prove: error[usage]: \"3.5\" is no whole number", ranks, help},
      {{"--prove", "0"}, "--prove: error[usage]: 0 is less than 2", ranks, help},
      {{"--prove-plans", "3"},
       "--prove-plans requires --prove",
       "--prove-plans beside --prove",
       "add --prove"},
      {{"--json", "--csv"}, "--json excludes --csv", "legal: --json or --csv", "leave one of them out"},
      {{"--json=all"}, "--json: error[usage]: it takes no value", "legal: --json alone", help},
      {{"--pareto-devices", "64,,128"}, "a value is missing in \"64,,128\"", devices, help},
      {{"--pareto-devices", "64,"}, "a value is missing in \"64,\"", devices, help},
      {{"--pareto-devices", ""}, "--pareto-devices: error[usage]: it cannot be empty", devices, help},
      {{"--pareto-devices", "0"}, "--pareto-devices: error[usage]: 0 is less than 1", devices, help},
      {{"--pareto-devices", "2;4"}, "\"2;4\" is no whole number", devices, help},
      {{"--pareto-devices", "2", "4"}, "not expected: 4", "--pareto-devices", help},
      {{"--only", "tp=-1"},
       "--only tp=-1: error[usage]: -1 is less than 0",
       "legal: whole",
       "fix: write a size"},
      {{"--only", "tp=99999999999"}, "99999999999 is more than 2147483647", "legal: whole numbers", "fix: "},
      {{"--only", "zero=4"}, "no strategy of the space is so", "zero=0, 1, 2, 3", "fix: leave it out"},
      {{"--only", "memory=flash"},
       "no value \"flash\"",
       "legal: none, hyperoffload",
       "fix: take one of these"},
      {{"--only", "recompute=none to full"},
       "no value",
       "none, none to selective, selective",
       "fix: take one"},
      {{"--only", ""}, "there is no dimension \"\"", "legal: pp, dp", "fix: write DIMENSION=VALUE"},
      {{"--space", ""}, "--space: error[usage]", "legal: all, megatron, deepspeed", "fix: name one of these"},
      {{"--out", ""}, "--out: error[usage]: it cannot be empty", any, help},
      {{"--out", "--json"}, "--out: error[usage]: a value is missing: --json is an option", any, help},
      {{"--svg", "plan"},
       "--svg plan: error[usage]",
       "legal: a name that ends in .svg",
       "fix: name it plan.svg"},
  };
  for (const Case& c : cases) {
    const Finished f = plan(kJob, c.options);
    EXPECT_EQ(f.status, 2) << f;
    EXPECT_EQ(f.out, "") << f;
    EXPECT_THAT(f.err, AllOf(HasSubstr(c.cause), HasSubstr("\n  legal: "), HasSubstr("\n  fix: "),
                             HasSubstr(c.legal), HasSubstr(c.fix)))
        << f;
  }
  const Finished nowhere = plan(kJob, {"--out", "nowhere/best.textproto"});
  EXPECT_EQ(nowhere.status, 7) << nowhere;
  EXPECT_THAT(nowhere.err, HasSubstr("--out nowhere/best.textproto: error[unwritable]"));
}

// A job without a layout for any constraints is not refused because of these.
TEST_F(PlanCommand, ConstraintsAreNotBlamedForDevicesThatDoNotDivide) {
  const Finished f =
      plan(edited(kJob, {{"devices: 2", "devices: 1000000"}}), {"--only", "memory=none", "--only", "tp=1"});
  EXPECT_THAT(f.err,
              AllOf(HasSubstr("error[bad-layout]: 1000000 devices"), HasSubstr("the next that divide")));
}

// A job after a list of values is no value of the list.
TEST_F(PlanCommand, ListsEndBeforeTheJob) {
  const std::string job = workspace_.job();
  const std::vector<std::vector<std::string>> lists{{"--pareto-devices", "1,2"}, {"--only", "tp=1,2"}};
  for (std::vector<std::string> words : lists) {
    words.insert(words.begin(), {"plan", "--leaders", "1"});
    words.insert(words.end(), {job, "--json"});
    const Finished f = workspace_.run(hyperrun(words), Seconds(200));
    ASSERT_THAT(f, Succeeded()) << f;
    EXPECT_TRUE(nlohmann::json::parse(f.out).contains("leaders"));
  }
}

// The best, and one that takes twice as long: their order shows on a busy machine as well.
TEST_F(PlanCommand, ProvesByExecution) {
  const Finished f = plan(four(), {"--prove", "2", "--prove-plans", "2", "--json"});
  ASSERT_THAT(f, Succeeded()) << f;
  const auto proof = nlohmann::json::parse(f.out)["proof"];
  EXPECT_EQ(proof["devices"], 2);
  EXPECT_EQ(proof["batch"], 2);
  EXPECT_EQ(proof["spearman"], 1);
  EXPECT_EQ(proof["best_behind"], 0);
  EXPECT_EQ(proof["proven"]["losses"], true);
  EXPECT_EQ(proof["proven"]["order"], true);
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
