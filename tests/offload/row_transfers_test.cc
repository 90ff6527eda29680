// Transfers of experts' rows move only the rows that exist, not the whole buffer.
#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/row_counts.h"
#include "runtime/sim/job_forecast.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

struct Case {
  const char* tier;
  int percent;  // of the job's HBM without transfers, low enough that rows move
};

Job moving_experts(const Case& c) {
  Job job = small_job("ep:4");
  set_layers(job, 4);
  job.model.experts = {.count = 8, .choices = 2, .ffn = 64};
  job.training.batch = 16;
  job.training.steps = 2;
  job.supernode.hbm = kGiB;
  job.supernode.hbm = Bytes(compile(job).plan.peak().value * c.percent / 100);
  job.supernode.pool = job.supernode.flash = kGiB;
  job.memory.policy = "hyperoffload";
  job.memory.tensors = {"activations"};
  job.memory.tier = c.tier;
  return job;
}

// Bytes moved by transfers, of all devices together.
std::int64_t moved(const std::vector<InvocationStats>& devices) {
  std::int64_t bytes = 0;
  for (const InvocationStats& s : devices)
    for (const Traffic& t : s.traffic)
      if (t.kind.collective == "prefetch" || t.kind.collective == "store") bytes += t.bytes.value;
  return bytes;
}

class RowTransfers : public ::testing::TestWithParam<Case> {};

// The router decides how many rows a device has, but all devices together have one row per choice. That
// equals the sum of the even shares that are simulated.
TEST_P(RowTransfers, AllDevicesTogetherMoveAsMuchAsAnEvenShareForEach) {
  const Job job = moving_experts(GetParam());
  const Plan plan = compile(job).plan;
  std::int64_t room = 0, of_rows = 0;
  for (const Instr& i : plan.roles[0].program("train").instrs) {
    if (beyond_hbm(i.op) == Tier::kHbm) continue;
    room += 4 * i.in[0].bytes.value;
    of_rows += row_of_transfer(i.op) > 0;
  }
  ASSERT_GT(of_rows, 0) << "the job moves no rows";
  const RunResult run = run_in_process(job);
  const JobForecast f = forecast(job, plan, hosts_of(machine_of(job.supernode), 4));
  std::vector<InvocationStats> simulated;
  for (int d = 0; d < 4; ++d) simulated.push_back(f.train.stats(d));
  EXPECT_EQ(moved(run.stats), moved(simulated));
  EXPECT_LT(moved(run.stats), room);
}

TEST_P(RowTransfers, GiveTheSameBits) {
  const Job job = moving_experts(GetParam());
  Job kept = job;
  kept.memory = {};
  kept.supernode.hbm = kGiB;
  const RunResult with = run_in_process(job), without = run_in_process(kept);
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_EQ(with.weights, without.weights);
}

INSTANTIATE_TEST_SUITE_P(Tiers, RowTransfers, ::testing::Values(Case{"pool", 70}, Case{"flash", 60}),
                         [](const auto& info) { return std::string(info.param.tier); });

}  // namespace
}  // namespace hyperrun::testing
