// Parts whose gradients are clipped by the norm of all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/device/submodel_training.h"

namespace hyperrun::testing {
namespace {

// The squares of parts are rounded to float32 one by one, which is all that differs.
TEST(Clipped, ByTheNormOfTheWhole) {
  for (const auto& [layout, losses, weights] : {std::tuple{"dp:1", 1e-6, 1e-5},
                                                {"dp:2", 1e-6, 1e-5},
                                                {"dp:2 zero1", 1e-6, 1e-5},
                                                {"dp:2 zero2", 1e-5, 1e-4},
                                                {"dp:2 zero3", 1e-5, 1e-4},
                                                {"dp:2 tp:2 sp zero1", 1e-5, 1e-4},
                                                {"tpx:2 tpy:2", 1e-5, 1e-4},
                                                {"dp:2 zero1 bf16", 1e-3, 2e-3}}) {
    Job job = text_job(layout, 2);
    job.training.steps = 6;
    job = clipped(job);
    const RunResult whole = trained_whole(job);
    EXPECT_GT(whole.grad_norms[0], job.training.clip_norm);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1}, std::vector<int>{1, 2}}) {
      const std::string what = std::string(layout) + ", " + std::to_string(cuts.size()) + " cuts";
      const Trained parts = trained_in_parts(job, parts_of(job, cuts, 2));
      expect_alike(whole, parts, losses, weights, what);
      const std::size_t count = cuts.size() + 1;
      for (std::size_t i = 0; i < parts.grad_norms.size(); ++i)
        EXPECT_NEAR(parts.grad_norms[i], whole.grad_norms[i / count],
                    30 * losses * whole.grad_norms[i / count])
            << what << ", part " << i % count;
    }
  }
}

// Clipping itself must do no more than scale all gradients by one factor.
TEST(Clipped, AnEncoderWithItsText) {
  const auto trained = [](const std::string& encoder, const std::string& text, double clip_norm,
                          const std::vector<std::vector<int>>& slices) {
    SubmodelSpec of_encoder = encoder_spec(encoder, 2), of_text = reader_spec(text, 2);
    of_encoder.job.training.clip_norm = of_text.job.training.clip_norm = clip_norm;
    return Omni(of_encoder, of_text).train(slices);
  };
  const Trained free = trained("dp:1", "dp:1", 0, {{}});
  const double norm = std::hypot(free.grad_norms[0], free.grad_norms[1]);
  const Trained one = trained("dp:1", "dp:1", norm / 2, {{}});
  for (const int part : {0, 1})
    EXPECT_NEAR(one.grad_norms[static_cast<std::size_t>(part)], norm, 1e-6 * norm);
  expect_alike(one, trained("dp:4", "tp:2 sp", norm / 2, {{2}, {0}, {3}, {1}}), 1e-5, 1e-4, "replicas");
  expect_alike(one, trained("dp:2 tp:2 zero1", "dp:2 zero1", norm / 2, {{}}), 1e-5, 1e-4, "zero1");
}

std::int64_t reductions(const Program& program) {
  return std::ranges::count_if(program.instrs, [](const Instr& i) {
    const auto* c = std::get_if<instr::Collective>(&i.op);
    return c != nullptr && c->kind != instr::CollectiveKind::kAllGather;
  });
}

// The sum of gradients is stored in place of the addend, if that is as large.
TEST(Clipped, GradientsAreExchangedOnceAndInPlace) {
  for (const std::string layout : {"dp:2", "dp:2 zero1", "dp:2 tp:2 sp"}) {
    Job job = text_job(layout, 2);
    job.training.clip_norm = 1;
    const Plan plan = compile_submodel(parts_of(job, {1}, 1)[1]).plan;
    const Program &norm = plan.roles[0].program("norm"), &update = plan.roles[0].program("update");
    EXPECT_GT(reductions(norm), 0) << layout;
    EXPECT_EQ(reductions(update), 0) << layout;
    Bytes sums{}, others{};
    for (const Buffer& b : norm.buffers)
      if (b.state) (b.category == Category::kGradients ? sums : others) += b.bytes;
    if (layout.ends_with("zero1"))
      EXPECT_NEAR(static_cast<double>(others.value), static_cast<double>(sums.value) / 2, 64);
    else
      EXPECT_EQ(others, Bytes(4)) << layout << ": the squares";
  }
  const Plan without = compile_submodel({.job = text_job("dp:2", 2)}).plan;
  for (const Program& p : without.roles[0].programs) EXPECT_NE(p.name, "norm");
}

}  // namespace
}  // namespace hyperrun::testing
