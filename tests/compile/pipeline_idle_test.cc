// The bubble of a pipeline, compared with the closed formulas of the papers.
#include "runtime/compile/pipeline_idle.h"

#include <gtest/gtest.h>

#include "runtime/ir/pipeline.h"

namespace hyperrun {
namespace {

PipelineSpec spec(const char* schedule, int devices, int chunks = 1) {
  return {"pp", schedule, chunks, even_stages(devices, chunks, devices * chunks)};
}

// The formula of Huang et al. 2019 (section 2.3), (p-1)/(m+p-1), also holds for fewer micro-batches than
// devices.
TEST(PipelineIdle, IsThatOfThePapers) {
  for (const int p : {2, 4, 8})
    for (const int m : {1, 2, 3, 8, 32}) {
      const double share = (p - 1.0) / (m + p - 1.0);
      EXPECT_NEAR(idle_share(spec("gpipe", p), p, m), share, 1e-12) << p << " " << m;
      EXPECT_NEAR(idle_share(spec("1f1b", p), p, m), share, 1e-12) << p << " " << m;
    }
}

// The formulas of Narayanan et al. 2021 and Qi et al. 2024 hold if micro-batches fill the devices.
TEST(PipelineIdle, IsLessOfFinerSchedules) {
  for (const int p : {2, 4, 8})
    for (const int m : {p, 4 * p}) {
      EXPECT_NEAR(idle_share(spec("interleaved", p, 2), p, m), (p - 1.0) / (2 * m + p - 1.0), 1e-12);
      EXPECT_NEAR(idle_share(spec("zero_bubble", p), p, m), (p - 1.0) / (3 * m + p - 1.0), 1e-12);
    }
}

}  // namespace
}  // namespace hyperrun
