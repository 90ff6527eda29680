// Jobs that do not fit: refused before they run, with the names and sizes of the largest tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

Error refusal(const Plan& plan, Bytes budget) {
  try {
    check_fits(plan, budget);
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "it fits";
  return Error(Code::kInternal, "");
}

// Each size is legal, but the bytes of all tensors together overflow 64 bits.
TEST(Fits, UncountableBytesAreRefused) {
  Job job = small_job("dp:2");
  job.model.hidden = 1 << 20;
  job.model.heads = job.model.kv_heads = 4096;
  job.model.head_dim = 256;
  job.model.vocab = job.model.ffn = 1 << 22;
  job.model.sequence = 1 << 24;
  job.training.batch = 1 << 16;
  try {
    compile(job);
    FAIL() << "it compiles";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit);
    EXPECT_EQ(e.place(), "supernode.hbm");
  }
}

TEST(Fits, IsExactToTheByte) {
  const Plan plan = compile(small_job(1, 2)).plan;
  EXPECT_NO_THROW(check_fits(plan, plan.peak()));
  EXPECT_EQ(refusal(plan, plan.peak() - Bytes(1)).code(), Code::kDoesNotFit);
  EXPECT_EQ(exit_code(Code::kDoesNotFit), ExitCode::kDoesNotFit);
}

TEST(Fits, NamesNumbersAndTheLargestTensorsAtThePeak) {
  const Plan plan = compile(small_job(1, 2)).plan;
  const Error e = refusal(plan, Bytes(100 * 1000));
  EXPECT_EQ(e.place(), "supernode.hbm");
  EXPECT_THAT(e.cause(), HasSubstr("program train needs " +
                                   std::to_string(plan.roles[0].program("train").peak[0].value) + " bytes"));
  EXPECT_THAT(e.cause(), HasSubstr("the budget is 100000"));
  EXPECT_THAT(e.legal(), HasSubstr(std::to_string(plan.peak().value) + " bytes or more"));

  // Finds the peak and the largest tensors there by brute force.
  const Program& p = plan.roles[0].program("train");
  std::int32_t where = 0;
  Bytes most{};
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(p.instrs.size()); ++i) {
    Bytes live{};
    for (const Buffer& b : p.buffers)
      if (b.state || (b.first <= i && i <= b.last)) live += b.bytes;
    if (live > most) most = live, where = i;
  }
  EXPECT_THAT(e.cause(), HasSubstr("at the peak, instruction " + std::to_string(where) + " ("));
  Bytes largest{};
  std::string name_of_largest;
  std::array<Bytes, kCategories> by_category{};
  for (const Buffer& b : p.buffers) {
    if (!b.state && (where < b.first || b.last < where)) continue;
    by_category[static_cast<std::size_t>(b.category)] += b.bytes;
    if (b.bytes > largest) largest = b.bytes, name_of_largest = b.name;
  }
  EXPECT_THAT(e.cause(), HasSubstr("live there:\n    " + name_of_largest + "  " + to_string(largest)));
  for (std::size_t c = 0; c < kCategories; ++c)
    if (by_category[c].value > 0) {
      EXPECT_THAT(e.cause(),
                  HasSubstr(std::string(name(static_cast<Category>(c))) + " " + to_string(by_category[c])));
    }
}

TEST(Fits, SplittingMoreLowersThePeak) {
  const auto peak = [](const Job& job) { return compile(job).plan.peak(); };
  Job halves = small_job(2, 2);
  halves.training.micro_batches = 2;
  const Bytes plain = peak(small_job(2, 2));
  EXPECT_LT(peak(halves), plain) << "micro_batches";
  EXPECT_LT(peak(small_job(2, 2, {"zero1"})), plain) << "zero1";
  EXPECT_LT(peak(small_job(2, 2, {"sp"})), plain) << "sp";
  EXPECT_LT(peak(small_job(2, 4)), plain) << "more tensor parallelism";
  EXPECT_LT(peak(small_job(4, 2)), plain) << "more devices";
}

}  // namespace
}  // namespace hyperrun::testing
