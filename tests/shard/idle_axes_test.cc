// Axes along which devices do the same work, beside what the compiled programs compute in all.
#include "runtime/shard/idle_axes.h"

#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// "-" where there are none.
std::string idle(const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  return mesh.to_string(mesh.list(idle_axes(sharded_training(job), mesh)));
}

Job with_presets(Job job, std::vector<std::string> presets) {
  job.parallel.presets = std::move(presets);
  return job;
}

// The flops of all matrix products of a step, all devices together.
double flops(const Job& job) {
  const Plan plan = compile(job).plan;
  double sum = 0;
  for (int d = 0; d < job.supernode.devices; ++d)
    for (const Instr& instr : plan.of_device(d).program("train").instrs)
      if (instr.stream == StreamKind::kCube) sum += static_cast<double>(work(instr, plan.mesh).flops.value);
  return sum;
}

TEST(IdleAxes, AreNoneWhereEveryAxisHasItsPreset) {
  for (const char* words : {"dp:2", "tp:2", "dp:2 tp:2 sp", "dp:4 zero3", "cp:2", "ring:2", "tpx:2 tpy:2"})
    EXPECT_EQ(idle(small_job(words)), "-") << words;
}

TEST(IdleAxes, AreThoseThatNothingUses) {
  const Job job = small_job("dp:2 tp:2");
  EXPECT_EQ(idle(with_presets(job, {})), "dp+tp");
  EXPECT_EQ(idle(with_presets(job, {"tp"})), "dp");
  EXPECT_EQ(idle(with_presets(job, {"dp"})), "tp");
}

// State in parts is gathered for use.
TEST(IdleAxes, AreThoseThatOnlyKeepState) {
  for (const char* zero : {"zero1", "zero2", "zero3"})
    EXPECT_EQ(idle(with_presets(small_job("dp:4"), {zero})), "dp") << zero;
}

TEST(IdleAxes, AreNoneWhereARuleSplitsTheBatch) {
  Job job = with_presets(small_job("dp:2"), {});
  job.parallel.mesh[0].name = "x";
  EXPECT_EQ(idle(job), "x");
  for (const char* tensor : {"ids", "targets"})
    job.parallel.rules.push_back({tensor, {{"batch", {"x"}}}, "job", false, {}});
  EXPECT_EQ(idle(job), "-");
}

// The devices of an idle axis multiply the same: their flops are so many times those of one.
TEST(IdleAxes, CostWhatTheySay) {
  const double once = flops(small_job("dp:1"));
  EXPECT_DOUBLE_EQ(flops(small_job("dp:4")), once);
  EXPECT_DOUBLE_EQ(flops(with_presets(small_job("dp:4"), {})), 4 * once);
  EXPECT_DOUBLE_EQ(flops(with_presets(small_job("dp:2 tp:2"), {"tp"})), 2 * once);
}

}  // namespace
}  // namespace hyperrun::testing
