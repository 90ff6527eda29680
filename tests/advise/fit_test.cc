// Advice for a job that does not fit. Each offer is read from the message, applied and measured.
#include "runtime/advise/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "runtime/advise/fit_changes.h"
#include "runtime/advise/fit_search.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/ir/presets.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/job_check.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Bytes peak(const Job& job) { return compile(job).plan.peak(); }

Nanos step(const Job& job) {
  return simulate(compile(job).plan, "train", job.supernode, Topology::one_host(job.supernode.devices))
      .makespan;
}

std::string remedy(Job job, Bytes budget, SearchLimits most = {}) {
  job.supernode.hbm = budget;
  try {
    require_fit({job, {}}, compile(job).plan, most);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    return e.remedy();
  }
  ADD_FAILURE() << "it fits";
  return "";
}

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find(by, begin)) != std::string::npos; begin = end + by.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

// The job after a user has followed the advice.
Job changed(Job job, const std::string& what) {
  const std::regex preset("add the preset (\\w+)"), cuts("set training.micro_batches to (\\d+)"),
      recompute("add training.recompute \\{ policy: \"(\\w+)\" \\}"),
      mesh("set the mesh to dp=(\\d+) tp=(\\d+)"), slots("set inference.slots to (\\d+)"),
      context("set inference.context to (\\d+)"),
      memory("set memory to \\{ policy: \"(\\w+)\"( tier: \"(\\w+)\")?( tensors: \"(\\w+)\")? \\}");
  for (const std::string& change : split(what, " and ")) {
    std::smatch value;
    if (std::regex_match(change, value, preset))
      job.parallel.presets.push_back(value[1]);
    else if (std::regex_match(change, value, cuts))
      job.training.micro_batches = std::stoi(value[1]);
    else if (std::regex_match(change, value, recompute))
      job.training.recompute.push_back({value[1], 0, job.model.layers - 1});
    else if (std::regex_match(change, value, memory))
      job.memory = {value[1], value[3].matched ? std::string(value[3]) : "pool",
                    value[5].matched ? std::vector<std::string>{value[5]} : std::vector<std::string>{}};
    else if (std::regex_match(change, value, slots))
      job.inference.slots = std::stoi(value[1]);
    else if (std::regex_match(change, value, context))
      job.inference.context = std::stoi(value[1]);
    else if (std::regex_match(change, value, mesh))
      for (MeshAxis& axis : job.parallel.mesh)
        axis.size = axis.name == "dp"   ? std::stoi(value[1])
                    : axis.name == "tp" ? std::stoi(value[2])
                                        : axis.size;
    else
      ADD_FAILURE() << change;
  }
  return job;
}

struct Offer {
  std::string what;
  Bytes needs{};
};

std::vector<Offer> offers(const std::string& remedy) {
  std::vector<Offer> all;
  for (const std::string& part : split(remedy, "\n    or ")) {
    std::smatch found;
    if (std::regex_search(part, found, std::regex("^(.*): needs (\\d+) bytes")))
      all.push_back({found[1], Bytes(std::stoll(found[2]))});
  }
  return all;
}

std::vector<std::string> names(const std::vector<Offer>& offers) {
  std::vector<std::string> all;
  for (const Offer& offer : offers) all.push_back(offer.what);
  return all;
}

Job with_micro_batches(Job job, std::int32_t n) {
  job.training.micro_batches = n;
  return job;
}

TEST(RequireFit, IsExactToTheByte) {
  Job job = small_job(1, 2);
  job.supernode.hbm = peak(job);
  EXPECT_NO_THROW(require_fit({job, {}}, compile(job).plan));
}

// From one byte too little down to budgets where nothing helps.
TEST(RequireFit, OffersFitAndNeedTheToldBytes) {
  for (const char* words : {"dp:1", "tp:2", "dp:2 tp:2", "dp:2 tp:2 zero1", "dp:2 cp:2", "dp:2 pp:2"}) {
    const Job job = small_job(words);
    const Bytes whole = peak(job);
    std::size_t made = 0;
    for (const Bytes budget : {whole - Bytes(1), Bytes(whole.value * 3 / 4), Bytes(whole.value / 2)}) {
      const std::string text = remedy(job, budget);
      EXPECT_THAT(text, HasSubstr("raise supernode.hbm to \"" + std::to_string(whole.value) + " B\""));
      for (const Offer& offer : offers(text)) {
        const Job other = changed(job, offer.what);
        EXPECT_TRUE(check_job(other, {}).empty()) << words << ": " << offer.what;
        EXPECT_EQ(peak(other), offer.needs) << words << ": " << offer.what;
        EXPECT_LE(offer.needs, budget) << words << ": " << offer.what;
        ++made;
      }
    }
    EXPECT_GE(made, 3U) << words;
  }
}

// Single changes or pairs. An offer never contains a faster one.
TEST(RequireFit, OffersTheThreeFastest) {
  const Job job = small_job("dp:2 tp:2");
  const Bytes budget = peak(job) - Bytes(1);
  const std::vector<std::string> ones{"add the preset sp",
                                      "add the preset zero1",
                                      "add the preset zero2",
                                      "add the preset zero3",
                                      "set the mesh to dp=1 tp=4",
                                      "set training.micro_batches to 2",
                                      "add training.recompute { policy: \"selective\" }"};
  std::vector<Nanos> fastest;
  for (const std::string& what : ones) {
    const Job other = changed(job, what);
    if (check_job(other, {}).empty() && peak(other) <= budget) fastest.push_back(step(other));
  }
  ASSERT_GE(fastest.size(), 5U);
  std::ranges::sort(fastest);
  const std::string text = remedy(job, budget);
  const std::vector<Offer> offered = offers(text);
  ASSERT_EQ(offered.size(), 3U) << text;
  for (std::size_t i = 0; i < 3; ++i) {
    const Nanos time = step(changed(job, offered[i].what));
    EXPECT_LE(time, fastest[i]) << offered[i].what;
    EXPECT_THAT(text, HasSubstr(to_string(time) + " a step as simulated"));
    for (std::size_t j = i + 1; j < 3; ++j)
      EXPECT_FALSE(std::ranges::all_of(split(offered[i].what, " and "), [&](const std::string& part) {
        return std::ranges::count(split(offered[j].what, " and "), part) > 0;
      })) << text;
  }
  EXPECT_THAT(text, HasSubstr(to_string(step(job)) + " a step"));
}

TEST(RequireFit, OffersTheMildestSufficientChange) {
  const Job job = small_job("dp:1");
  const Bytes four = peak(with_micro_batches(job, 4));
  ASSERT_GT(peak(with_micro_batches(job, 2)), four);
  ASSERT_GT(four, peak(with_micro_batches(job, 8)));
  const auto offered = names(offers(remedy(job, four)));
  EXPECT_THAT(offered, AllOf(Contains("set training.micro_batches to 4"),
                             Not(Contains("set training.micro_batches to 2")),
                             Not(Contains("set training.micro_batches to 8"))));
}

TEST(RequireFit, OffersNothingThatTheJobHasOrCannotHave) {
  Job job = small_job("tp:2 sp");
  job.training.recompute = {{"full", 0, job.model.layers - 1}};
  job.training.micro_batches = job.training.batch;
  const std::string text = remedy(job, peak(job) - Bytes(1));
  EXPECT_THAT(text, AllOf(HasSubstr("no preset of this mesh, more micro-batches or recomputation would help"),
                          Not(HasSubstr("needs"))));
  const Job one = small_job("tp:2");
  EXPECT_THAT(remedy(one, peak(one) - Bytes(1)),
              AllOf(HasSubstr("preset sp"), Not(HasSubstr("zero")), Not(HasSubstr("cp"))))
      << "without an axis dp";
}

TEST(RequireFit, AddsNoLowerZeroToAHigher) {
  const Job job = small_job(4, 1, {"zero3"});
  for (const Family& family : changes_of_training(job, compile(job).plan))
    for (const Change& change : family.changes) EXPECT_THAT(change.what, Not(HasSubstr("zero")));
}

TEST(RequireFit, CombinesInsufficientChanges) {
  const Job job = small_job("dp:2 tp:2");
  // Below what a single change reaches, even the harshest of its kind.
  Bytes best = peak(job);
  for (const std::string one :
       {"add the preset sp", "add the preset zero1", "add the preset zero2", "add the preset zero3",
        "set training.micro_batches to 4", "add training.recompute { policy: \"full\" }"})
    best = std::min(best, peak(changed(job, one)));
  const std::string text = remedy(job, best - Bytes(1));
  EXPECT_THAT(names(offers(text)), AllOf(Not(IsEmpty()), Each(HasSubstr(" and ")))) << text;
  for (const Offer& offer : offers(text)) EXPECT_LT(peak(changed(job, offer.what)), best) << offer.what;
}

// Several changes may be faster than the one that would be enough.
TEST(RequireFit, CombinesChangesThatAreFasterThanOne) {
  Job job = small_job("dp:2 tp:2 sp");
  job.supernode.pool = kGiB;
  const std::string both = "add the preset zero3 and add training.recompute { policy: \"full\" }",
                    offload = "set memory to { policy: \"hyperoffload\" }";
  job.supernode.hbm = peak(changed(job, both));
  const Job moved = changed(job, offload);
  ASSERT_LE(peak(moved), job.supernode.hbm);
  ASSERT_LT(step(changed(job, both)), step(moved));
  const std::vector<Offer> offered = offers(remedy(job, job.supernode.hbm));
  ASSERT_FALSE(offered.empty());
  EXPECT_LE(step(changed(job, offered[0].what)), step(changed(job, both))) << offered[0].what;
}

// Offers are ranked by step time, which is compared with that of sufficient memory.
TEST(RequireFit, RanksBySimulatedTime) {
  Job job = small_job("dp:2 tp:2 sp");
  job.supernode.pool = kGiB;
  const Bytes whole = peak(job);
  for (const int percent : {95, 85, 70, 60}) {
    const Bytes budget(whole.value * percent / 100);
    const std::string text = remedy(job, budget);
    Nanos before{};
    for (const Offer& offer : offers(text)) {
      Job other = changed(job, offer.what);
      other.supernode.hbm = budget;
      const Nanos time = step(other), more = time - step(job);
      EXPECT_GE(time, before) << text;
      EXPECT_THAT(text, HasSubstr(to_string(time) + " a step as simulated (" +
                                  (more < Nanos(0) ? to_string(Nanos(0) - more) + " less"
                                                   : to_string(more) + " more") +
                                  " than with enough HBM)"));
      before = time;
    }
  }
}

// Jobs that offload already, but not everything, or to another tier.
struct Moving {
  const char* name;
  MemorySpec now;
  Bytes pool, flash;
  const char* offer;
};

class RequireFitMoving : public ::testing::TestWithParam<Moving> {};

TEST_P(RequireFitMoving, OffersMoreOffloadingOrAnotherTier) {
  const Moving& p = GetParam();
  Job job = small_job("dp:1");  // no preset helps
  job.training.micro_batches = job.training.batch;
  job.training.recompute = {{"full", 0, job.model.layers - 1}};
  job.memory = p.now, job.supernode.pool = p.pool, job.supernode.flash = p.flash;
  Job other = changed(job, p.offer);
  other.supernode.hbm = Bytes(1);
  job.supernode.hbm = other.supernode.hbm = Bytes(peak(other).value * 11 / 10);
  ASSERT_LE(peak(other), other.supernode.hbm);
  const std::string text = remedy(job, job.supernode.hbm);
  EXPECT_THAT(names(offers(text)), Contains(p.offer)) << text;
  EXPECT_THAT(text, ContainsRegex("at most .* of optimizer.* of a device lie in .*, .* move there and back"));
}

INSTANTIATE_TEST_SUITE_P(
    All, RequireFitMoving,
    ::testing::Values(
        Moving{"NothingYet", {}, kGiB, {}, "set memory to { policy: \"hyperoffload\" }"},
        Moving{"FlashAlone", {}, {}, kGiB, "set memory to { policy: \"hyperoffload\" tier: \"flash\" }"},
        Moving{"OtherTensors",
               {"hyperoffload", "pool", {"gradients"}},
               kGiB,
               {},
               "set memory to { policy: \"hyperoffload\" }"},
        Moving{
            "WeightsAlone", {"weights", "pool", {}}, kGiB, {}, "set memory to { policy: \"hyperoffload\" }"},
        Moving{"PoolTooSmall",
               {"hyperoffload", "pool", {}},
               Bytes(4096),
               kGiB,
               "set memory to { policy: \"hyperoffload\" tier: \"flash\" }"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RequireFit, TellsWhatIsOffloaded) {
  Job job = small_job("dp:1");
  job.training.micro_batches = job.training.batch;
  job.training.recompute = {{"full", 0, job.model.layers - 1}};
  job.supernode.pool = kGiB;
  const Bytes budget(peak(job).value * 6 / 10);
  const std::string text = remedy(job, budget);
  Job other = changed(job, "set memory to { policy: \"hyperoffload\" }");
  other.supernode.hbm = budget;
  const Plan plan = compile(other).plan;
  const Program& train = plan.roles[0].program("train");
  Bytes optimizer{}, moved{};
  for (const Buffer& b : train.buffers)
    if (b.tier == Tier::kPool && b.state && b.category == Category::kOptimizer) optimizer += b.bytes;
  for (const Instr& instr : train.instrs)
    if (beyond_hbm(instr.op) == Tier::kPool) moved += instr.in[0].bytes;
  EXPECT_THAT(text,
              AllOf(HasSubstr(to_string(optimizer) + " of optimizer"),
                    HasSubstr(" of a device lie in the pool, " + to_string(moved) + " move there and back")));
}

TEST(RequireFit, TellsTheLeastMemoryIfNothingSuffices) {
  const Job job = small_job("dp:2 tp:2");
  const std::string text = remedy(job, Bytes(1000));
  std::smatch least;
  ASSERT_TRUE(std::regex_search(
      text, least,
      std::regex("or use more devices\n  the least that was tried needs (\\d+) bytes \\(.*\\): (.*)(\n|$)")))
      << text;
  const Bytes low = peak(changed(job, least[2]));
  EXPECT_EQ(low, Bytes(std::stoll(least[1])));
  EXPECT_LT(low, peak(changed(job, "add the preset zero3")));
}

// If advice on an offloading job is followed literally, the job fits.
TEST(RequireFit, RaisedBudgetSuffices) {
  for (const char* words : {"dp:1", "cp:2 dp:2 zero3", "pp:2 dp:2"}) {
    Job job = small_job(words);
    job.training.recompute = {{"full", 0, job.model.layers - 1}};
    job.memory.policy = "hyperoffload";
    job.supernode.pool = kGiB;
    const Bytes least = [&] {
      Job none = job;
      none.supernode.hbm = Bytes(1);
      return peak(none);
    }();
    for (const Bytes budget : {least - Bytes(1), Bytes(least.value / 2)}) {
      const std::string text = remedy(job, budget);
      std::smatch raise;
      ASSERT_TRUE(std::regex_search(text, raise, std::regex("raise supernode.hbm to \"(\\d+) B\""))) << text;
      Job raised = job;
      raised.supernode.hbm = Bytes(std::stoll(raise[1]));
      EXPECT_NO_THROW(require_fit({raised, {}}, compile(raised).plan)) << words;
    }
  }
}

TEST(RequireFit, AdvisesOnATooSmallPool) {
  Job job = small_job("dp:2");
  job.memory.policy = "hyperoffload";
  job.supernode.pool = Bytes(4096);
  job.supernode.hbm = Bytes(peak(small_job("dp:2")).value / 10 * 8);
  Error error(Code::kInternal, "it fits");
  try {
    require_fit({job, {}}, compile(job).plan);
  } catch (const Error& e) {
    error = e;
  }
  ASSERT_EQ(error.place(), "supernode.pool") << error.what();
  EXPECT_THAT(error.cause(), AllOf(HasSubstr("at the peak, instruction "),
                                   HasSubstr("largest tensors live there"), HasSubstr("next used by")));
  const std::string text = error.remedy();
  EXPECT_FALSE(offers(text).empty()) << text;
  for (const Offer& offer : offers(text)) EXPECT_LE(offer.needs, job.supernode.pool) << offer.what;
  std::smatch raise;
  ASSERT_TRUE(std::regex_search(text, raise,
                                std::regex("raise supernode.pool to \"(\\d+) B\": .* a step\n.*\n    or "
                                           "raise supernode.hbm to \"(\\d+) B\": .* a step")))
      << text;
  Job pool = job, hbm = job;
  pool.supernode.pool = Bytes(std::stoll(raise[1]));
  hbm.supernode.hbm = Bytes(std::stoll(raise[2]));
  EXPECT_NO_THROW(require_fit({pool, {}}, compile(pool).plan));
  EXPECT_NO_THROW(require_fit({hbm, {}}, compile(hbm).plan));
}

Error refusal(const Job& job) {
  try {
    require_fit({job, {}}, compile(job).plan);
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "it fits";
  return Error(Code::kInternal, "");
}

// Jobs whose HBM only a larger second tier can relieve. Both budgets are told; followed literally, the job
// fits.
struct Both {
  const char* layout;
  std::int64_t hbm_percent;  // of what is needed without offloading
  MemorySpec memory;
};

class RequireFitBoth : public ::testing::TestWithParam<Both> {};

TEST_P(RequireFitBoth, AdvisesOnHbmAndTheSecondTier) {
  const auto& [layout, percent, memory] = GetParam();
  Job job = small_job(layout);
  job.supernode.hbm = Bytes(peak(job).value * percent / 100);
  job.memory = memory;
  const bool flash = memory.tier == "flash";
  Bytes& beyond = flash ? job.supernode.flash : job.supernode.pool;
  beyond = Bytes(4096);
  const std::string tier = flash ? "flash" : "pool";
  const Error error = refusal(job);
  EXPECT_EQ(error.place(), "supernode.hbm");
  const std::string text = error.remedy();
  std::smatch raise;
  ASSERT_TRUE(std::regex_search(
      text, raise,
      std::regex("(set memory to . policy: \"hyperoffload\" . and )?raise (?:supernode.hbm to \"(\\d+) B\" "
                 "and )?supernode." +
                 tier + " to \"(\\d+) B\": [^;]* a step")))
      << text;
  EXPECT_EQ(raise[1].matched, memory.policy == "none");
  if (raise[1].matched) job.memory.policy = "hyperoffload";
  if (raise[2].matched) job.supernode.hbm = Bytes(std::stoll(raise[2]));
  const Bytes enough(std::stoll(raise[3]));
  if (memory.policy != "none") {
    EXPECT_THAT(error.cause(),
                AllOf(HasSubstr("of HBM on each device, the budget is "),
                      HasSubstr("\n  of the " + tier + " there is too little as well: the budget is 4096 "),
                      ContainsRegex("\n  program .* of it for one device\n  at the peak, instruction "),
                      HasSubstr(std::to_string(enough.value) + " bytes")));
    EXPECT_THAT(error.legal(), HasSubstr(raise[2].str() + " or more beside " + raise[3].str()));
  }
  beyond = enough;
  EXPECT_NO_THROW(require_fit({job, {}}, compile(job).plan)) << text;
  // The told budget is the least that is enough.
  beyond -= Bytes(1);
  EXPECT_FALSE(all_fits(compile(job).plan, job.supernode));
}

INSTANTIATE_TEST_SUITE_P(All, RequireFitBoth,
                         ::testing::Values(Both{"dp:2", 5, {"hyperoffload", "pool", {}}},
                                           Both{"pp:2 dp:2", 5, {"hyperoffload", "pool", {}}},
                                           Both{"dp:2", 5, {"reactive", "flash", {}}}, Both{"dp:2", 70, {}},
                                           Both{"dp:2", 5, {}}));

TEST(RequireFit, IgnoresALargeEnoughPool) {
  Job job = small_job("dp:2");
  const Bytes whole = peak(job);
  job.supernode.pool = kGiB;
  for (const char* policy : {"none", "hyperoffload"})
    for (const int percent : {70, 5}) {
      job.memory.policy = policy;
      job.supernode.hbm = Bytes(whole.value * percent / 100);
      const Plan plan = compile(job).plan;
      if (all_fits(plan, job.supernode)) continue;
      const Error error = refusal(job);
      EXPECT_THAT(error.cause(), Not(HasSubstr("too little as well")));
      EXPECT_THAT(error.remedy(), Not(HasSubstr("supernode.pool")));
    }
}

Effort effort_of(const Job& job) { return effort_like(job, compile(job).plan, job); }

// A job with a long step compared with the effort that may be spent.
Job many_micro_batches(const std::string& words) {
  Job job = small_job(words);
  job.training.batch *= 32;
  job.training.micro_batches = 32;
  job.supernode.pool = kGiB;
  return job;
}

TEST(FitSearch, StaysWithinItsEffort) {
  for (const Job& base : {small_job("dp:2 tp:2"), many_micro_batches("dp:2 tp:2")}) {
    Job job = base;
    const Plan plan = compile(job).plan;
    job.supernode.hbm = Bytes(plan.peak().value / 2);
    const LoadedJob loaded{job, {}};
    int before = -1;
    for (const Effort most : {Effort(0), 3 * effort_of(job), 12 * effort_of(job)}) {
      FitSearch search(loaded, plan, {}, {Tier::kHbm, job.supernode.hbm}, most);
      search.run();
      if (search.best().empty() && search.anything_helps()) (void)search.combine_all();
      // The last one may have twice the estimated instructions, because of transfers.
      EXPECT_LE(search.effort(), 2 * most);
      EXPECT_GT(search.compilations(), before);
      before = search.compilations();
      EXPECT_FALSE(search.untried().empty() && search.untried_combinations() == 0) << most;
      for (const Attempt& t : search.best()) EXPECT_EQ(peak(t.job), t.needs) << t.what;
    }
  }
}

TEST(FitSearch, CompilesNoJobTwice) {
  Job job = small_job("dp:2 tp:2");
  const Plan plan = compile(job).plan;
  job.supernode.hbm = Bytes(1000);
  const LoadedJob loaded{job, {}};
  FitSearch search(loaded, plan, {}, {Tier::kHbm, job.supernode.hbm});
  search.run();
  const int before = search.compilations();
  const Attempt first = search.combine_all();
  const int after = search.compilations();
  ASSERT_GT(after, before);
  EXPECT_EQ(search.combine_all().what, first.what);
  EXPECT_EQ(search.compilations(), after);
}

TEST(RequireFit, TellsWhatWasNotTried) {
  const Job job = small_job("dp:2 tp:2");
  const std::string none = remedy(job, peak(job) - Bytes(1), 0);
  EXPECT_THAT(offers(none), IsEmpty());
  EXPECT_THAT(none,
              AllOf(ContainsRegex("^raise supernode.hbm to .*\n    or use more devices\n"),
                    HasSubstr("\n  not tried for want of time: add "), HasSubstr("add the preset zero1"),
                    HasSubstr("add training.recompute { policy: \"full\" }"), Not(HasSubstr("would help"))));
  const std::string some = remedy(job, peak(job) - Bytes(1), 4 * effort_of(job));
  const std::size_t line = some.find("\n  not tried for want of time: ");
  ASSERT_NE(line, std::string::npos) << some;
  ASSERT_THAT(offers(some), Not(IsEmpty()));
  for (const Offer& offer : offers(some)) {
    EXPECT_LT(peak(changed(job, offer.what)), peak(job)) << offer.what;
    EXPECT_EQ(some.find(offer.what, line), std::string::npos) << offer.what;
  }
  const Job one = small_job("dp:1");
  EXPECT_THAT(remedy(one, peak(one) - Bytes(1)), Not(HasSubstr("not tried")));
}

// The fastest single change is found without compiling all of them.
TEST(RequireFit, PredictsManyMicroBatchesFromFew) {
  for (const char* words : {"dp:2 tp:2", "pp:2 dp:2"}) {
    Job job = many_micro_batches(words);
    job.supernode.pool = Bytes(0);
    const Bytes budget(peak(job).value * 9 / 10);
    const std::string text = remedy(job, budget, 8 * effort_of(job));
    const std::vector<Offer> offered = offers(text);
    ASSERT_FALSE(offered.empty()) << text;
    for (const Offer& offer : offered) {
      EXPECT_EQ(peak(changed(job, offer.what)), offer.needs) << offer.what;
      EXPECT_LE(offer.needs, budget) << offer.what;
    }
    const Nanos best = step(changed(job, offered.front().what));
    for (const std::string one :
         {"add the preset zero1", "add the preset zero2", "add the preset zero3",
          "add training.recompute { policy: \"selective\" }", "add training.recompute { policy: \"full\" }"})
      if (const Job other = changed(job, one); peak(other) <= budget) {
        EXPECT_LE(best, step(other)) << one << "\n" << text;
      }
  }
}

// Planned offloading would take a hundred compilations. Unplanned offloading is tried instead, and the
// message says so.
TEST(RequireFit, OffersUnplannedOffloadingIfPlanningTakesTooLong) {
  Job job = many_micro_batches("dp:1");
  job.supernode.hbm = Bytes(peak(job).value * 6 / 10);
  const std::string text = remedy(job, job.supernode.hbm, 20 * effort_of(job));
  EXPECT_THAT(text,
              ContainsRegex("not tried for want of time: .*set memory to . policy: \"hyperoffload\" ."));
  const std::string what = "set memory to { policy: \"reactive\" }";
  EXPECT_THAT(names(offers(text)), Contains(what)) << text;
  EXPECT_LE(peak(changed(job, what)), job.supernode.hbm);
}

TEST(RequireGenerationFit, OffersFit) {
  Job job = small_job("dp:2");
  job.run.generate.tokens = 8;
  job.inference.slots = 8;
  job.inference.context = 512;
  job.supernode.pool = kGiB;
  const Bytes whole = compile_generation(job).plan.peak();
  job.supernode.hbm = Bytes(whole.value / 10 * 8);
  std::string text;
  try {
    require_generation_fit({job, {}}, compile_generation(job).plan);
  } catch (const Error& e) {
    text = e.remedy();
  }
  EXPECT_THAT(text, HasSubstr("raise supernode.hbm to \"" + std::to_string(whole.value) + " B\""));
  EXPECT_THAT(text, HasSubstr("a pass of decode as simulated"));
  ASSERT_GE(offers(text).size(), 2U) << text;
  for (const Offer& offer : offers(text)) {
    const Job other = changed(job, offer.what);
    const Bytes needs = compile_generation(other).plan.peak();
    EXPECT_EQ(needs, offer.needs) << offer.what;
    EXPECT_LE(needs, job.supernode.hbm) << offer.what;
  }
}

}  // namespace
}  // namespace hyperrun::testing
