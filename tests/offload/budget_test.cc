// Budgets of offload plans. A job that fits in some budget fits in every larger one; the budget that a
// refusal names is exact to the byte; planning ahead is no slower than the reactive policy.
#include <gtest/gtest.h>

#include <random>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

constexpr const char* kLayouts[] = {
    "dp:1",
    "dp:2 zero1",
    "dp:2 zero3",
    "dp:2 tp:2 sp zero2 bf16",
    "cp:2 dp:2 zero3",
    "ring:2 dp:2",
    "tpx:2 tpy:2",
    "pp:2 dp:2 gpipe",
    "pp:2 dp:2 1f1b",
    "pp:2 dp:2 interleaved chunks:2",
    "pp:2 dp:2 zero_bubble zero2 bf16",
    "pp:2 tp:2 sp zero_bubble",
    "pp:4 1f1b",
};

// A job of the layout with random micro-batches and recomputation.
Job random_job(const char* layout, std::mt19937_64& random) {
  const auto any = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::int32_t>(
        from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1)));
  };
  Job job = small_job(layout);
  set_layers(job, 4);
  job.training.micro_batches = 1 << any(0, 1);
  const char* policies[] = {"none", "selective", "full"};
  const char* policy = policies[any(0, 2)];
  if (std::string(policy) != "none") job.training.recompute = {{policy, 0, job.model.layers - 1}};
  job.supernode.hbm = kGiB;
  return job;
}

Job with(Job job, const std::string& policy, Bytes hbm, Bytes pool = kGiB) {
  job.memory.policy = policy;
  job.supernode.hbm = hbm;
  job.supernode.pool = pool;
  return job;
}

Bytes share_of(Bytes bytes, double share) {
  return Bytes(static_cast<std::int64_t>(share * static_cast<double>(bytes.value)));
}

class Budgets : public ::testing::TestWithParam<const char*> {};

TEST_P(Budgets, TheNamedBudgetAndEveryLargerOneAreEnough) {
  std::mt19937_64 random(1);
  for (const char* policy : {"hyperoffload", "reactive", "weights"}) {
    const Job job = random_job(GetParam(), random);
    const Bytes whole = compile(job).plan.peak();
    const Bytes told = compile(with(job, policy, Bytes(1))).plan.peak();
    std::vector<Bytes> budgets{told, share_of(told, 1.01)};
    for (int i = 0; i < 2; ++i)
      budgets.push_back(
          told + Bytes(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                                1, (whole - told).value)))));
    for (const Bytes budget : budgets) {
      const Bytes peak = compile(with(job, policy, budget)).plan.peak();
      EXPECT_LE(peak, budget) << policy << ", told " << told.value;
      EXPECT_LE(compile(with(job, policy, peak)).plan.peak(), peak) << policy;
    }
    for (const Bytes budget : {told - Bytes(1), share_of(told, 0.9)})
      EXPECT_EQ(compile(with(job, policy, budget)).plan.peak(), told) << policy << " of " << budget.value;
  }
}

std::vector<std::vector<OffloadPlan>> offload_plans(const Compiled& compiled) {
  std::vector<std::vector<OffloadPlan>> list;
  for (const RoleMoves& role : compiled.moves) list.push_back(role.programs);
  return list;
}

// A job refused as hopeless fits under no plan. Other jobs get the same plans as without that check.
TEST_P(Budgets, HopelessJobsFitUnderNoPlan) {
  std::mt19937_64 random(4);
  const Job job = random_job(GetParam(), random);
  const Bytes told = compile(with(job, "hyperoffload", Bytes(1))).plan.peak();
  const auto of_share = [&](double share) { return with(job, "hyperoffload", share_of(told, share)); };
  for (const double share : {0.95, 1.0}) {
    try {
      const Compiled compiled = compile(of_share(share), nullptr, {.hopeless = true});
      EXPECT_EQ(offload_plans(compiled), offload_plans(compile(of_share(share)))) << share;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kDoesNotFit);
      EXPECT_LT(share, 1) << e.cause();
    }
  }
  EXPECT_THROW(compile(of_share(0.4), nullptr, {.hopeless = true}), Error);
}

// Only long steps are refused. A short step that does not fit is planned as usual.
TEST(LongSteps, AreRefusedWhereTheirFastestPlanDoesNotFit) {
  constexpr std::size_t kLong = 1 << 16;
  Job job = small_job("dp:1");
  const Bytes told = compile(with(job, "hyperoffload", Bytes(1))).plan.peak();
  EXPECT_EQ(compile(with(job, "hyperoffload", Bytes(1)), nullptr, {.longest = kLong}).plan.peak(), told);
  set_layers(job, 8);
  job.training.batch = job.training.micro_batches = 256;
  const Compiled whole = compile(with(job, "none", kGiB));
  ASSERT_GT(whole.plan.roles[0].program("train").instrs.size(), kLong);
  try {
    compile(with(job, "hyperoffload", Bytes(1)), nullptr, {.longest = kLong});
    FAIL() << "it fits";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    EXPECT_NE(e.cause().find("instructions takes many minutes"), std::string::npos) << e.cause();
  }
  const Bytes enough = share_of(whole.plan.peak(), 1.1);
  EXPECT_EQ(compile(with(job, "hyperoffload", enough), nullptr, {.longest = kLong}).plan.peak(),
            whole.plan.peak());
}

Nanos step(const Job& job, const Plan& plan) {
  return simulate(plan, "train", job.supernode, hosts_of(machine_of(job.supernode), job.supernode.devices))
      .makespan;
}

TEST_P(Budgets, PlanningAheadIsNoSlowerThanReacting) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2; ++i) {
    Job job = random_job(GetParam(), random);
    if (i % 2 == 1) job.model.hidden = 128, job.model.head_dim = 16, job.model.sequence = 64;
    const Bytes whole = compile(job).plan.peak();
    for (const double share : {0.8, 0.6}) {
      const Bytes budget = share_of(whole, share);
      const Job ahead = with(job, "hyperoffload", budget), reacting = with(job, "reactive", budget);
      const Plan reacted = compile(reacting).plan;
      if (reacted.peak() > budget) continue;
      const Plan planned = compile(ahead).plan;
      EXPECT_LE(planned.peak(), budget);
      EXPECT_LE(step(ahead, planned), step(reacting, reacted)) << i << " at " << share;
    }
  }
}

// The pool budget that a refusal names is enough, and so is the HBM that it names for a smaller pool.
TEST_P(Budgets, ThePoolBudgetIsRespected) {
  std::mt19937_64 random(3);
  const Job job = random_job(GetParam(), random);
  const Bytes whole = compile(job).plan.peak();
  for (const double share : {0.8}) {
    const Bytes hbm = share_of(whole, share);
    for (const char* policy : {"hyperoffload", "reactive"}) {
      const Plan least = compile(with(job, policy, hbm, Bytes(0))).plan;
      if (least.peak() > hbm) continue;
      const Bytes told = least.of_all_devices(Tier::kPool);
      for (const Bytes pool : {told, share_of(told, 1.2)}) {
        const Plan plan = compile(with(job, policy, hbm, pool)).plan;
        EXPECT_LE(plan.peak(), hbm) << policy << " at " << share;
        EXPECT_LE(plan.of_all_devices(Tier::kPool), pool) << policy << " at " << share;
      }
      for (const Bytes pool : {Bytes(0), share_of(told, 0.5)}) {
        const Bytes more = compile(with(job, policy, Bytes(1), pool)).plan.peak();
        const Plan plan = compile(with(job, policy, more, pool)).plan;
        EXPECT_LE(plan.peak(), more) << policy;
        EXPECT_LE(plan.of_all_devices(Tier::kPool), pool) << policy;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Budgets, ::testing::ValuesIn(kLayouts),
                         [](const auto& info) { return test_title(info.param); });

}  // namespace
}  // namespace hyperrun::testing
