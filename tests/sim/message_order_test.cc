// Stages whose messages wait for each other: the compiler refuses programs that the simulated machine would
// never end.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/sim/simulate.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

Job interleaved(int micro_batches) {
  Job job = small_job("pp:4 interleaved chunks:2");
  set_layers(job, 8);
  job.training.micro_batches = micro_batches;
  job.training.batch = micro_batches;
  return job;
}

TEST(MessageOrder, OfAnInterleavedPipelineEndsOrIsRefused) {
  int refused = 0;
  for (int m = 1; m <= 13; ++m) {
    const Job job = interleaved(m);
    try {
      const Plan plan = compile(job).plan;
      EXPECT_GT(simulate(plan, "train", job.supernode, Topology::one_host(4)).makespan.value, 0) << m;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadValue) << m << ": " << e.what();
      EXPECT_EQ(e.legal(), "a multiple of 4");
      EXPECT_NE(m % 4, 0) << m;
      ++refused;
    }
  }
  EXPECT_GT(refused, 0) << "nothing was put to the test";
}

}  // namespace
}  // namespace hyperrun::testing
