// Candidates for simulation.
#include "runtime/plan/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/plan/incumbent_cutoff.h"
#include "runtime/plan/search.h"
#include "runtime/spec/job_reader.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

// The best forecasts here are with transfers, and there are many of them.
TEST(Candidates, HaveAllAxisOrdersWithAndWithoutOffloading) {
  Job job = planned_llama(8, 4, 16);
  job.supernode.hbm = Bytes(std::int64_t{1} << 50);
  const std::int64_t all = candidates_of(job, {.leaders = 1}).forecasts.front().forecast.memory;
  job.supernode.hbm = Bytes(all * 2 / 5);
  job.supernode.pool = Bytes(std::int64_t{1} << 40);
  const std::vector<Forecasted> found = candidates_of(job, {.leaders = 1}).forecasts;
  const auto is_unmoved = [](const Forecasted& f) { return f.strategy.memory == PlanMemory::kNone; };
  ASSERT_GT(std::ranges::find_if(found, is_unmoved) - found.begin(), 8) << "nothing is shown";
  const auto reordered = [&](bool unmoved) {
    return std::ranges::count_if(found, [&](const Forecasted& f) {
      return is_unmoved(f) == unmoved && f.strategy.order != Strategy().order;
    });
  };
  EXPECT_GT(reordered(true), 0);
  EXPECT_GT(reordered(false), 0);
}

Strategy in_two_dimensions() {
  Strategy s;
  s[PlanAxis::kTensor] = s[PlanAxis::kTensorY] = 2;
  return s;
}

// A restricted space needs forecasts of its own: those of the wide space count only up to a limit.
TEST(IncumbentCutoff, IsSeparateForEachSpaceUpToALimit) {
  const Space &all = space_named("all"), &megatron = space_named("megatron");
  const Strategy wide = in_two_dimensions(), narrow;
  ASSERT_FALSE(can_express(megatron, wide));
  IncumbentCutoff incumbents(std::vector{&all, &megatron}, 2);
  incumbents.add(wide, 100);
  EXPECT_EQ(incumbents.cutoff(wide), std::numeric_limits<double>::infinity()) << "of one for two leaders";
  incumbents.add(wide, 90);
  EXPECT_EQ(incumbents.cutoff(wide), 100);
  EXPECT_NEAR(incumbents.cutoff(narrow), 110, 1e-9) << "megatron has none";
  incumbents.add(narrow, 103);
  incumbents.add(narrow, 101);
  EXPECT_EQ(incumbents.cutoff(wide), 100);
  EXPECT_EQ(incumbents.cutoff(narrow), 103);
  incumbents.add(narrow, 80);
  EXPECT_EQ(incumbents.cutoff(wide), 90);
  EXPECT_NEAR(incumbents.cutoff(narrow), 99, 1e-9) << "of 101, a tenth more than 90";
}

// Leaders are chosen in turns, first of new families, then of any, so eight leaders include the first four.
TEST(Search, MoreLeadersIncludeFewerLeaders) {
  const Job job = parse_job(R"(supernode { devices: 24 profile: "matrix384" }
                               model { layers: 8 hidden: 1024 heads: 16 kv_heads: 8 ffn: 4096 vocab: 32000
                                 sequence: 1024 }
                               data { corpus: "none.txt" }
                               training { steps: 1 batch: 24 lr: 1e-4 precision: "bfloat16" })",
                            "turns", JobUse::kToBePlanned)
                      .job;
  const Search few = search(job, {.leaders = 4}), many = search(job, {.leaders = 8});
  ASSERT_TRUE(few.found() && many.found());
  EXPECT_LE(many.leaders.front().simulated, few.leaders.front().simulated);
}

}  // namespace
}  // namespace hyperrun::testing
