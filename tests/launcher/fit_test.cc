// What a job that does not fit is told to change. Each offer is read from the message, made, and measured.
#include "launcher/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

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
using ::testing::HasSubstr;
using ::testing::Not;

Bytes peak(const Job& job) { return compile(job).plan.peak(); }

std::string remedy(Job job, Bytes budget) {
  job.supernode.hbm = budget;
  try {
    require_fit({job, {}}, compile(job).plan);
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

// The job that somebody has who does what it says.
Job changed(Job job, const std::string& what) {
  const std::regex preset("add the preset (\\w+)"), cuts("set training.micro_batches to (\\d+)"),
      recompute("add training.recompute \\{ policy: \"(\\w+)\" \\}"),
      mesh("set the mesh to dp=(\\d+) tp=(\\d+)");
  for (const std::string& change : split(what, " and ")) {
    std::smatch value;
    if (std::regex_match(change, value, preset))
      job.parallel.presets.push_back(value[1]);
    else if (std::regex_match(change, value, cuts))
      job.training.micro_batches = std::stoi(value[1]);
    else if (std::regex_match(change, value, recompute))
      job.training.recompute.push_back({value[1], 0, job.model.layers - 1});
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
  for (const std::string& part : split(remedy, "; or ")) {
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

TEST(RequireFit, ToTheByte) {
  Job job = small_job(1, 2);
  job.supernode.hbm = peak(job);
  EXPECT_NO_THROW(require_fit({job, {}}, compile(job).plan));
}

// From a byte too little down to where nothing helps.
TEST(RequireFit, WhatItOffersFitsAndNeedsWhatItSays) {
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

Nanos step(const Job& job) {
  return simulate(compile(job).plan, "train", job.supernode, Topology::one_host(job.supernode.devices))
      .makespan;
}

TEST(RequireFit, OffersTheThreeOfAllThatAreTheFastest) {
  const Job job = small_job("dp:2 tp:2");
  const Bytes budget = peak(job) - Bytes(1);
  std::vector<std::pair<Nanos, std::string>> all;
  for (const std::string what :
       {"add the preset sp", "add the preset zero1", "add the preset zero2", "add the preset zero3",
        "set the mesh to dp=1 tp=4", "set training.micro_batches to 2",
        "add training.recompute { policy: \"selective\" }"}) {
    const Job other = changed(job, what);
    if (check_job(other, {}).empty() && peak(other) <= budget) all.emplace_back(step(other), what);
  }
  ASSERT_GE(all.size(), 5U);
  std::ranges::stable_sort(all, {}, &std::pair<Nanos, std::string>::first);
  const std::string text = remedy(job, budget);
  const std::vector<Offer> offered = offers(text);
  ASSERT_EQ(offered.size(), 3U) << text;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(step(changed(job, offered[i].what)), all[i].first) << offered[i].what;
    EXPECT_THAT(text, HasSubstr(to_string(all[i].first) + " a step as simulated"));
  }
  EXPECT_THAT(text, HasSubstr(to_string(step(job)) + " a step"));
}

TEST(RequireFit, OffersTheMildestThatIsEnough) {
  const Job job = small_job("dp:1");
  const Bytes four = peak(with_micro_batches(job, 4));
  ASSERT_GT(peak(with_micro_batches(job, 2)), four);
  ASSERT_GT(four, peak(with_micro_batches(job, 8)));
  const auto offered = names(offers(remedy(job, four)));
  EXPECT_THAT(offered, AllOf(Contains("set training.micro_batches to 4"),
                             Not(Contains("set training.micro_batches to 2")),
                             Not(Contains("set training.micro_batches to 8"))));
}

TEST(RequireFit, SaysNothingOfWhatTheJobHasOrCannotHave) {
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

TEST(RequireFit, PutsTogetherWhatAloneIsNotEnough) {
  const Job job = small_job("dp:2 tp:2");
  // Below all that one change reaches, with the harshest of its kind.
  Bytes best = peak(job);
  for (const std::string one :
       {"add the preset sp", "add the preset zero1", "add the preset zero2", "add the preset zero3",
        "set training.micro_batches to 4", "add training.recompute { policy: \"full\" }"})
    best = std::min(best, peak(changed(job, one)));
  const std::string text = remedy(job, best - Bytes(1));
  EXPECT_THAT(text, AllOf(HasSubstr(" and "), HasSubstr(", and none of these alone is enough; or raise")));
  ASSERT_EQ(offers(text).size(), 1U) << text;
  EXPECT_LT(peak(changed(job, offers(text)[0].what)), best);
}

TEST(RequireFit, SaysHowLowItGetsWhereNothingIsEnough) {
  const Job job = small_job("dp:2 tp:2");
  const std::string text = remedy(job, Bytes(1000));
  std::smatch least;
  ASSERT_TRUE(std::regex_search(
      text, least,
      std::regex("or use more devices; the least that was tried needs (\\d+) bytes \\(.*\\): (.*)$")))
      << text;
  const Bytes low = peak(changed(job, least[2]));
  EXPECT_EQ(low, Bytes(std::stoll(least[1])));
  EXPECT_LT(low, peak(changed(job, "add the preset zero3")));
}

// Where tensors may move, too, what is told is done literally, and then it fits.
TEST(RequireFit, RaisedAsItSaysItFits) {
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

TEST(RequireFit, OfAPoolThatIsTooSmallSaysAsMuch) {
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
                                std::regex("raise supernode.pool to \"(\\d+) B\": .* a step; or "
                                           "raise supernode.hbm to \"(\\d+) B\": .* a step")))
      << text;
  Job pool = job, hbm = job;
  pool.supernode.pool = Bytes(std::stoll(raise[1]));
  hbm.supernode.hbm = Bytes(std::stoll(raise[2]));
  EXPECT_NO_THROW(require_fit({pool, {}}, compile(pool).plan));
  EXPECT_NO_THROW(require_fit({hbm, {}}, compile(hbm).plan));
}

TEST(RequireGenerationFit, OffersWhatFits) {
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
    Job other = job;
    std::smatch value;
    if (std::regex_match(offer.what, value, std::regex("set inference.(slots|context) to (\\d+)")))
      (value[1] == "slots" ? other.inference.slots : other.inference.context) = std::stoi(value[2]);
    else if (std::regex_match(
                 offer.what, value,
                 std::regex("set memory to \\{ policy: \"hyperoffload\"( tensors: \"(\\w+)\")? \\}")))
      other.memory = {"hyperoffload", "pool",
                      value[2].matched ? std::vector<std::string>{value[2]} : std::vector<std::string>{}};
    else
      ADD_FAILURE() << offer.what;
    const Bytes needs = compile_generation(other).plan.peak();
    EXPECT_EQ(needs, offer.needs) << offer.what;
    EXPECT_LE(needs, job.supernode.hbm) << offer.what;
  }
}

}  // namespace
}  // namespace hyperrun::testing
