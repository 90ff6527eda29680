// The duration of a step with experts depends on the rows of an even share of the tokens, not on the room for
// other routings.
#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "runtime/cost/groups.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/profile_reader.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

constexpr double kNoCapacity = 0;

Job job_of(const std::string& parallel, double factor) {
  Job job = small_job(parallel);
  job.model.experts = {.count = 8, .choices = 2, .ffn = 64, .capacity = {.factor = factor}};
  job.supernode.profile = "matrix384";
  job.supernode.machine = load_profile("matrix384", "");
  return job;
}

Topology topology_of(const Job& job) { return hosts_of(machine_of(job.supernode), job.supernode.devices); }

Nanos step(const Job& job) { return makespan(compile(job).plan, "train", job.supernode); }

// The duration of each instruction of each role, by its name.
std::map<std::string, std::vector<std::int64_t>> lasts(const Job& job) {
  const Plan plan = compile(job).plan;
  std::map<std::string, std::vector<std::int64_t>> list;
  for (int device = 0; device < job.supernode.devices; ++device) {
    const Program& program = plan.of_device(device).program("train");
    const std::vector<Nanos> each = durations(plan, "train", job.supernode, topology_of(job), device);
    for (std::size_t i = 0; i < each.size(); ++i)
      list[program.origins[static_cast<std::size_t>(program.instrs[i].origin)]].push_back(each[i].value);
  }
  return list;
}

class ExpectedRows : public ::testing::TestWithParam<const char*> {};

TEST_P(ExpectedRows, EachInstructionLastsAsLongWithAnyRoom) {
  const auto even = lasts(job_of(GetParam(), 1));
  for (const double factor : {1.5, 2.0, 4.0})
    EXPECT_EQ(lasts(job_of(GetParam(), factor)), even) << "a factor of " << factor;
  EXPECT_EQ(lasts(job_of(GetParam(), kNoCapacity)), even) << "no capacity";
}

// Buffers of other sizes have other addresses, and a writer waits for earlier readers of an address. These
// waits are the only trace of the room; the largest of these cases is 1.7 % of a step.
TEST_P(ExpectedRows, AStepLastsAsLongButForWaitsForAddresses) {
  const auto even = static_cast<double>(step(job_of(GetParam(), 1)).value);
  for (const double factor : {2.0, 4.0, kNoCapacity}) {
    Job job = job_of(GetParam(), factor);
    EXPECT_NEAR(static_cast<double>(step(job).value), even, 0.02 * even) << factor;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExpectedRows,
                         ::testing::Values("dp:2", "ep:4", "dp:2 ep:2", "ep:4 bf16", "ep:2 tp:2",
                                           "dp:2 ep:2 zero3", "pp:2 ep:2"),
                         [](const auto& info) { return test_title(info.param); });

// With a capacity below an even share rows are dropped, and a step is shorter.
TEST(ExpectedRows, RoomForLessThanAnEvenShareIsFull) {
  EXPECT_LT(step(job_of("ep:4", 0.5)), step(job_of("ep:4", 1)));
}

// With a capacity the router's scores are gathered along a split sequence, so the order of tokens is the same
// under every layout. Nothing else differs.
TEST(ExpectedRows, ACapacityGathersTheScoresOfASplitSequence) {
  const auto bytes_by_origin = [](double factor) {
    const Job job = job_of("ep:2 tp:2 sp", factor);
    const Plan plan = compile(job).plan;
    const Program& program = plan.roles[0].program("train");
    std::map<std::string, std::int64_t> bytes;
    for (const Instr& i : program.instrs) {
      const std::string& origin = program.origins[static_cast<std::size_t>(i.origin)];
      if (origin.find(".router") == std::string::npos && origin.find(".route") == std::string::npos &&
          origin.find(".ids") == std::string::npos && origin.find(".gates") == std::string::npos)
        bytes[origin] += work(i, plan.mesh).hbm.value;
    }
    return bytes;
  };
  EXPECT_EQ(bytes_by_origin(kNoCapacity), bytes_by_origin(2));
  EXPECT_LT(step(job_of("ep:2 tp:2 sp", kNoCapacity)), step(job_of("ep:2 tp:2 sp", 2)));
}

}  // namespace
}  // namespace hyperrun::testing
