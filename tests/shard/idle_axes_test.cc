// Idle axes, compared with the operations of compiled Programs.
#include "runtime/shard/idle_axes.h"

#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// The names of the idle axes, or "-".
std::string idle(const Job& job) {
  const Mesh mesh{job.parallel.mesh};
  return mesh.to_string(mesh.list(idle_axes(sharded_training(job), mesh)));
}

Job with_presets(Job job, std::vector<std::string> presets) {
  job.parallel.presets = std::move(presets);
  return job;
}

// The FLOPs of all matrix products of a step, of all devices together.
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

TEST(IdleAxes, AreTheAxesThatNothingUses) {
  const Job job = small_job("dp:2 tp:2");
  EXPECT_EQ(idle(with_presets(job, {})), "dp+tp");
  EXPECT_EQ(idle(with_presets(job, {"tp"})), "dp");
  EXPECT_EQ(idle(with_presets(job, {"dp"})), "tp");
}

// Split state is gathered for use.
TEST(IdleAxes, AreTheAxesThatSplitOnlyState) {
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

// Devices along an idle axis compute the same products, so FLOPs grow with their number.
TEST(IdleAxes, RepeatTheWork) {
  const double once = flops(small_job("dp:1"));
  EXPECT_DOUBLE_EQ(flops(small_job("dp:4")), once);
  EXPECT_DOUBLE_EQ(flops(with_presets(small_job("dp:4"), {})), 4 * once);
  EXPECT_DOUBLE_EQ(flops(with_presets(small_job("dp:2 tp:2"), {"tp"})), 2 * once);
}

}  // namespace
}  // namespace hyperrun::testing
