// Which devices hold the same part of a weight or a moment.
#include "runtime/ir/shared_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> devices_of(const SharedPart& part) {
  std::vector<int> devices;
  for (const SharedPart::Holder& c : part.holders) devices.push_back(c.device);
  return devices;
}

// The sets of devices that hold parts of the tensor.
std::vector<std::vector<int>> sets_of(const Plan& plan, const std::string& tensor) {
  std::vector<std::vector<int>> sets;
  for (const SharedPart& r : shared_parts(plan))
    if (r.tensor == tensor) sets.push_back(devices_of(r));
  return sets;
}

const std::string kMatrix = "layers.0.ffn.down", kNorm = "layers.0.ffn.norm";

TEST(SharedPartsTest, FollowFromTheAxesThatSplitNothing) {
  const Plan plan = compile(small_job("dp:2 tp:2")).plan;
  ASSERT_TRUE(std::ranges::count(plan.roles[0].state, kMatrix, &StateTensor::name));
  EXPECT_THAT(sets_of(plan, kMatrix), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(sets_of(plan, kNorm), ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(SharedPartsTest, OfMomentsEndWhereZeroSplitsThem) {
  const Plan plan = compile(small_job("dp:2 zero1")).plan;
  EXPECT_THAT(sets_of(plan, kMatrix), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(sets_of(plan, kMatrix + ".adam_m"), IsEmpty());
  EXPECT_THAT(shared_parts(compile(small_job("dp:2 zero3")).plan), IsEmpty());
  EXPECT_THAT(shared_parts(compile(small_job(1, 1)).plan), IsEmpty());
}

// A tied embedding is held by the first stage and by the last.
TEST(SharedPartsTest, AreHeldByStagesAsWell) {
  Job job = small_job("pp:2 dp:2");
  job.model.tied_head = true;
  const Plan plan = compile(job).plan;
  ASSERT_EQ(plan.roles.size(), 2U);
  EXPECT_THAT(sets_of(plan, "embed"), ElementsAre(ElementsAre(0, 1, 2, 3)));
  const auto matrix = sets_of(plan, kMatrix);
  ASSERT_EQ(matrix.size(), 1U);
  EXPECT_EQ(matrix.front().size(), 2U);
}

TEST(SharedPartsTest, AreWhatADeviceSharesOfItsState) {
  for (const char* layout : {"dp:2 tp:2", "dp:2 zero1", "pp:2 dp:2", "dp:2 zero3", "dp:4 tp:2 sp zero1"}) {
    const Plan plan = compile(small_job(layout)).plan;
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      std::vector<bool> shared(plan.roles[r].state.size());
      for (const SharedPart& set : shared_parts(plan))
        for (const SharedPart::Holder& c : set.holders)
          if (plan.role_of(c.device) == r) shared[c.tensor] = true;
      EXPECT_EQ(shared_state(plan, r), shared) << layout;
    }
  }
}

}  // namespace
}  // namespace hyperrun::testing
