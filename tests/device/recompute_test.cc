// Recomputation changes the kept activations and never a number.
#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "runtime/ir/live_bytes.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Job job_of(const std::string& parallel, const std::vector<RecomputeSpec>& recompute) {
  Job job = small_job(parallel);
  job.model.layers = 4;
  job.training.micro_batches = 2;
  job.training.steps = 3;
  job.training.recompute = recompute;
  return job;
}

Bytes activations(const Job& job) {
  const Compiled compiled = compile(job);
  return peak_use(compiled.plan.roles[0].program("train"))
      .by_category[static_cast<std::size_t>(Category::kActivations)];
}

class Recompute : public ::testing::TestWithParam<const char*> {};

TEST_P(Recompute, GivesTheSameBits) {
  const RunResult kept = run_in_process(job_of(GetParam(), {}));
  for (const auto& specs : std::vector<std::vector<RecomputeSpec>>{
           {{"full", 0, 3}}, {{"selective", 0, 3}}, {{"full", 1, 2}, {"selective", 3, 3}}}) {
    const RunResult again = run_in_process(job_of(GetParam(), specs));
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_EQ(again.weights, kept.weights);
    EXPECT_EQ(again.moments, kept.moments);
  }
}

TEST_P(Recompute, KeepsLess) {
  const Bytes none = activations(job_of(GetParam(), {})),
              selective = activations(job_of(GetParam(), {{"selective", 0, 3}})),
              full = activations(job_of(GetParam(), {{"full", 0, 3}}));
  EXPECT_LT(selective, none);
  EXPECT_LT(full, selective);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Recompute,
                         ::testing::Values("dp:1", "tp:2 sp", "dp:2 zero3", "cp:2", "ring:4", "ring:2 cp:2",
                                           "tpx:2 tpy:2", "dp:2 tp:2 sp zero2"),
                         [](const auto& info) { return test_title(info.param); });

struct Counts {
  int products = 0, attentions = 0, weight_gathers = 0;
};

Counts count(const Job& job) {
  Counts n;
  const Compiled compiled = compile(job);
  for (const Instr& i : compiled.plan.roles[0].program("train").instrs) {
    n.products += std::holds_alternative<instr::Gemm>(i.op);
    n.attentions += std::holds_alternative<instr::Attention>(i.op);
    const auto* c = std::get_if<instr::Collective>(&i.op);
    n.weight_gathers += c != nullptr && c->kind == instr::CollectiveKind::kAllGather;
  }
  return n;
}

// The last of a layer's seven products is not computed again: only the next layer reads it.
TEST(RecomputeWork, RepeatsALayerOnce) {
  const Counts none = count(job_of("dp:1", {})), one = count(job_of("dp:1", {{"full", 2, 2}})),
               cheap = count(job_of("dp:1", {{"selective", 0, 3}}));
  EXPECT_EQ(one.products - none.products, 2 * 6);
  EXPECT_EQ(one.attentions - none.attentions, 2);
  EXPECT_EQ(cheap.products, none.products);
  EXPECT_EQ(cheap.attentions, none.attentions);
}

TEST(RecomputeWork, GathersWeightsOnceForBackwardPassAndRepetition) {
  const Counts none = count(job_of("dp:2 zero3", {})), full = count(job_of("dp:2 zero3", {{"full", 0, 3}}));
  EXPECT_EQ(full.weight_gathers, none.weight_gathers);
}

}  // namespace
}  // namespace hyperrun::testing
