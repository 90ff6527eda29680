// Layouts of training in bfloat16, compared with one device.
#include <gtest/gtest.h>

#include <ostream>

#include "runtime/verify/verify.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// The cases are pairwise: every schedule, ZeRO stage, policy of recomputation, and split of a layer with
// every other.
struct Rounded {
  const char* parallel;
  const char* recompute;
  bool experts = false;
};

void PrintTo(const Rounded& r, std::ostream* out) { *out << r.parallel << " " << r.recompute; }

class VerifiedBfloat16 : public ::testing::TestWithParam<Rounded> {};

TEST_P(VerifiedBfloat16, EqualsOneDevice) {
  Job job = small_job(GetParam().parallel);
  job.training.precision = kBfloat16;
  job.training.micro_batches = 2;
  job.training.recompute = {{GetParam().recompute, 0, job.model.layers - 1}};
  if (GetParam().experts)
    job.model.experts = {
        .count = 4, .choices = 2, .ffn = 32, .shared = 1, .aux_loss = 0.01, .bias_rate = 0.001};
  const Verification v = verify_layout(job, compile(job), 2);
  EXPECT_EQ(v.diverging, 0) << divergence(job, v).what();
  for (const KindSummary& kind : v.kinds) EXPECT_GT(kind.compared, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Pairwise, VerifiedBfloat16,
    ::testing::Values(
        Rounded{"dp:2", "none"}, Rounded{"dp:2 tp:2 sp zero1", "selective"},
        Rounded{"dp:2 tp:2 zero2", "full"}, Rounded{"dp:2 cp:2 zero3", "full"},
        Rounded{"cp:2 tp:2 sp", "selective"}, Rounded{"tpx:2 tpy:2", "full"},
        Rounded{"dp:2 tpx:2 tpy:2 zero2", "selective"}, Rounded{"ring:4", "full"},
        Rounded{"dp:2 ring:2 zero1", "selective"}, Rounded{"ring:2 cp:2 tp:2 sp", "none"},
        Rounded{"pp:2 dp:2 gpipe zero1", "full"}, Rounded{"pp:2 dp:2 gpipe zero2", "selective", true},
        Rounded{"pp:2 dp:2 zero3", "none"}, Rounded{"pp:2 tp:2 sp 1f1b", "selective"},
        Rounded{"pp:2 dp:2 zero_bubble zero3", "selective"}, Rounded{"pp:2 dp:2 zero_bubble zero2", "full"},
        Rounded{"pp:2 ep:2 zero_bubble", "none", true}, Rounded{"pp:1 tp:2 chunks:2 interleaved", "full"},
        Rounded{"pp:1 dp:2 chunks:2 interleaved zero1", "none", true},
        Rounded{"replicas:2 dp:2 zero3", "selective"}, Rounded{"ep:4", "full", true},
        Rounded{"ep:2 tp:2 sp", "selective", true}, Rounded{"dp:2 ep:2 zero3", "none", true},
        Rounded{"dp:2 tp:2 sp zero3", "full", true}),
    [](const auto& info) {
      return test_title(info.param.parallel) + info.param.recompute + (info.param.experts ? "Experts" : "");
    });

TEST(VerifiedGradients, ThatAreSentAsBfloat16EqualOneDevices) {
  for (const char* parallel :
       {"dp:4", "dp:2 tp:2 sp zero1", "pp:2 dp:2", "replicas:2 dp:2 zero2", "dp:4 bf16"}) {
    Job job = small_job(parallel);
    job.training.micro_batches = 2;
    job.parallel.gradients = kBfloat16;
    const Verification v = verify_layout(job, compile(job), 2);
    EXPECT_EQ(v.diverging, 0) << parallel << ": " << divergence(job, v).what();
    EXPECT_EQ(v.others, [&] {
      Job wide = job;
      wide.parallel.gradients = kFloat32;
      return verify_layout(wide, compile(wide), 2).others;
    }()) << "what is rounded has counterparts";
  }
}

}  // namespace
}  // namespace hyperrun::testing
