// Early updates, during the backward pass: the same bits in less memory, only without gradient clipping.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/job_forecast.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// A job whose weights dominate its activations: all gradients together make the peak.
Job heavy(const std::string& parallel) {
  Job job = small_job(parallel);
  job.model.sequence = 8;
  job.model.ffn = 512;
  set_layers(job, 4);
  job.training.batch = 4;
  job.training.steps = 3;
  job.training.clip_norm = 0;
  job.supernode.hbm = job.supernode.pool = kGiB;
  return job;
}

// The job with `share` of the HBM that it needs in the usual order.
Job in_less(Job job, const std::string& policy, double share) {
  const Bytes peak = compile(job).plan.peak();
  job.supernode.hbm = Bytes(static_cast<std::int64_t>(share * static_cast<double>(peak.value)));
  job.memory.policy = policy;
  return job;
}

std::size_t updates_amid_the_passes(const Plan& plan) {
  std::size_t n = 0;
  for (const Role& role : plan.roles) {
    const std::vector<Instr>& instrs = role.program("train").instrs;
    const auto last = std::ranges::find(instrs.rbegin(), instrs.rend(), Pass::kBackward, &Instr::pass);
    n += static_cast<std::size_t>(std::count_if(
        last, instrs.rend(), [](const Instr& i) { return std::holds_alternative<instr::AdamW>(i.op); }));
  }
  return n;
}

void expect_same_bits(const Job& one, const Job& other) {
  const RunResult a = run_in_process(one), b = run_in_process(other);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.grad_norms, b.grad_norms);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.moments, b.moments);
  EXPECT_TRUE(b.strays.empty());
}

struct Case {
  const char* parallel;
  const char* policy = "none";
  double share = 0.99;
  int micro_batches = 1;
  bool tied = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.parallel << " " << c.policy; }

class EarlyUpdates : public ::testing::TestWithParam<Case> {
 protected:
  Job usual() const {
    Job job = heavy(GetParam().parallel);
    job.training.micro_batches = GetParam().micro_batches;
    job.model.tied_head = GetParam().tied;
    return job;
  }
};

TEST_P(EarlyUpdates, ChangeNoBit) {
  const Job job = usual(), less = in_less(job, GetParam().policy, GetParam().share);
  EXPECT_EQ(updates_amid_the_passes(compile(job).plan), 0U) << "all has room in the usual order";
  const Plan plan = compile(less).plan;
  ASSERT_LE(plan.peak(), less.supernode.hbm);
  EXPECT_GT(updates_amid_the_passes(plan), 10U);
  expect_same_bits(job, less);
}

// Clipping leaves only the usual order.
TEST_P(EarlyUpdates, AreNoneWhereGradientsAreClipped) {
  Job job = usual();
  job.training.clip_norm = 1;
  EXPECT_EQ(updates_amid_the_passes(compile(in_less(job, GetParam().policy, GetParam().share)).plan), 0U);
}

INSTANTIATE_TEST_SUITE_P(Layouts, EarlyUpdates,
                         ::testing::Values(Case{"dp:1"}, Case{"dp:1 bf16"},
                                           Case{"dp:1", "none", 0.99, 1, true}, Case{"dp:2"},
                                           Case{"dp:2 bf16"}, Case{"tp:2 sp"},
                                           Case{"tp:2 sp", "none", 0.99, 1, true}, Case{"tpx:2 tpy:2"},
                                           Case{"cp:2"}, Case{"dp:2", "hyperoffload", 0.5, 2},
                                           Case{"dp:2 tp:2 sp bf16", "hyperoffload", 0.6}),
                         [](const auto& info) {
                           return test_title(std::string(info.param.parallel) + " " + info.param.policy) +
                                  (info.param.tied ? "Tied" : "") + std::to_string(info.param.micro_batches);
                         });

// Either order may be chosen where early updates gain nothing. The bits are the same.
class AnyOrder : public ::testing::TestWithParam<Case> {};

TEST_P(AnyOrder, GivesTheSameBits) {
  Job job = heavy(GetParam().parallel);
  job.training.micro_batches = GetParam().micro_batches;
  const Job less = in_less(job, GetParam().policy, GetParam().share);
  ASSERT_LE(compile(less).plan.peak(), less.supernode.hbm);
  expect_same_bits(job, less);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, AnyOrder,
    ::testing::Values(Case{"dp:1", "reactive", 0.6}, Case{"dp:1", "hyperoffload", 0.6},
                      Case{"dp:2 zero1", "hyperoffload", 0.6},
                      Case{"dp:2 zero2 bf16", "hyperoffload", 0.6, 2},
                      Case{"dp:2 zero3", "hyperoffload", 0.6}, Case{"ring:2", "hyperoffload", 0.6},
                      Case{"pp:2", "hyperoffload", 0.6, 4}, Case{"pp:2 dp:2", "hyperoffload", 0.6, 2},
                      Case{"pp:2 dp:2 zero1 bf16", "reactive", 0.7, 2},
                      Case{"pp:2 tp:2 sp zero_bubble", "hyperoffload", 0.6, 4},
                      Case{"pp:2 interleaved chunks:2", "hyperoffload", 0.7, 4}),
    [](const auto& info) { return test_title(std::string(info.param.parallel) + " " + info.param.policy); });

double seconds(const Job& job) {
  const Plan plan = compile(job).plan;
  EXPECT_LE(plan.peak(), job.supernode.hbm);
  const JobForecast f = forecast(job, plan, hosts_of(machine_of(job.supernode), job.supernode.devices));
  return static_cast<double>(f.train.makespan.value);
}

// Computation and transfers take about the same time. Early updates hide the transfers; late ones cannot.
TEST(EarlyUpdates, HideTransfersThatNothingHidesAtTheEnd) {
  Job job = heavy("dp:1");
  set_layers(job, 8);
  Job clipped = job;
  clipped.training.clip_norm = 1;
  const Job less = in_less(job, "hyperoffload", 0.6), clipped_less = in_less(clipped, "hyperoffload", 0.6);
  EXPECT_EQ(less.supernode.hbm, clipped_less.supernode.hbm);
  EXPECT_LT(seconds(less), 0.95 * seconds(clipped_less));
  Job reacting = less;
  reacting.memory.policy = "reactive";
  EXPECT_LE(seconds(less), seconds(reacting));
}

}  // namespace
}  // namespace hyperrun::testing
