// The same job under every layout equals one device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <tuple>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

struct Layout {
  const char* parallel;
  int kv_heads = 4;  // kv heads of 8 heads; "tp" splits these too
  int layers = 2;
  int micro_batches = 1;
  bool tied = false;
  bool gpt2 = false;  // GPT-2 is tied and has as many heads of keys as of queries
  int window = 0;     // of a Qwen2, which has biases, in its first layer; of all layers if negative
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.parallel; }

std::string title(const ::testing::TestParamInfo<Layout>& info) {
  const Layout& l = info.param;
  return test_title(l.parallel) + (l.layers != 2 ? "layers" + std::to_string(l.layers) : "") +
         (l.micro_batches != 1 ? "micro" + std::to_string(l.micro_batches) : "") + (l.tied ? "tied" : "") +
         (l.kv_heads == 1 ? "OneHeadOfKeys" : "") + (l.gpt2 ? "Gpt2" : "") +
         (l.window != 0 ? "Window" + std::to_string(std::abs(l.window)) : "") + (l.window < 0 ? "OfAll" : "");
}

Job job_of(const Layout& layout) {
  Job job = small_job(layout.parallel);
  job.model.kv_heads = layout.kv_heads;
  job.model.tied_head = layout.tied;
  if (layout.gpt2) become_gpt2(job);
  if (layout.window != 0) {
    job.model.name = "qwen2";
    job.model.window = std::abs(layout.window);
    if (layout.window > 0) job.model.window_layers = {{0, 0}};
  }
  set_layers(job, layout.layers);
  if (layout.layers > 2) job.training.init_std = 0.005;
  job.training.micro_batches = layout.micro_batches;
  job.training.steps = 20;
  return job;
}

// The same model on one device. Micro-batches are summed, so it needs none.
Layout single(Layout layout) {
  layout.parallel = "dp:1 tp:1";
  layout.micro_batches = 1;
  return layout;
}
using Model = std::tuple<int, int, bool, bool, int>;  // the arguments of a single-device run
Model model_of(const Layout& l) { return {l.kv_heads, l.layers, l.tied, l.gpt2, l.window}; }

Layout gpt2(const char* parallel, int micro_batches = 1) {
  return {.parallel = parallel, .micro_batches = micro_batches, .gpt2 = true};
}

Job without_clipping(Job job) {
  job.training.clip_norm = 0;
  return job;
}

class LayoutSweep : public ::testing::TestWithParam<Layout> {};

TEST_P(LayoutSweep, LossesEqualOneDevice) {
  static std::map<Model, RunResult> singles;
  const auto [known, fresh] = singles.try_emplace(model_of(GetParam()));
  if (fresh) known->second = run_in_process(job_of(single(GetParam())));
  const RunResult& one = known->second;
  const RunResult many = run_in_process(job_of(GetParam()));
  ASSERT_EQ(one.losses.size(), many.losses.size());
  const double share = GetParam().layers > 2 || GetParam().gpt2 ? 0.9 : 0.85;  // these take longer
  EXPECT_LT(one.losses.back(), share * one.losses.front()) << "it does not learn";
  for (std::size_t s = 0; s < one.losses.size(); ++s) {
    EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << "step " << s;
    EXPECT_NEAR(many.grad_norms[s], one.grad_norms[s], 1e-3 * one.grad_norms[s]) << "step " << s;
  }
}

// After one step from zero, m = (1 - beta1) g: the first moments show each gradient.
TEST_P(LayoutSweep, FirstGradientsEqualOneDevice) {
  static std::map<Model, RunResult> singles;
  const auto [known, fresh] = singles.try_emplace(model_of(GetParam()));
  if (fresh) known->second = run_in_process(without_clipping(job_of(single(GetParam()))), {.steps = 1});
  const RunResult& one = known->second;
  const RunResult many = run_in_process(without_clipping(job_of(GetParam())), {.steps = 1});
  ASSERT_EQ(one.moments.size(), many.moments.size());
  for (const auto& [name, values] : one.moments) {
    // A bias added to all keys changes no softmax: but for rounding its gradient is zero.
    if (name.find("wk.bias") != std::string::npos) continue;
    EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(OneDimension, LayoutSweep,
                         ::testing::Values(Layout{"dp:2"}, Layout{"tp:2"}, Layout{"tp:2 sp"},
                                           Layout{"dp:2 zero1"}, Layout{"dp:2 zero2"}, Layout{"dp:2 zero3"},
                                           Layout{"cp:2"}, Layout{"tpx:2 tpy:1"}, Layout{"tpx:1 tpy:2"},
                                           Layout{"dp:4"}, Layout{"tp:4"}, Layout{"tp:4 sp"},
                                           Layout{"dp:4 zero3"}, Layout{"cp:4"}, Layout{"dp:8"},
                                           Layout{"dp:8 zero3"}),
                         title);
// Heads stay whole along a ring: eight devices for four heads of keys, four for one.
INSTANTIATE_TEST_SUITE_P(Ring, LayoutSweep,
                         ::testing::Values(Layout{"ring:2"}, Layout{"ring:4"}, Layout{"ring:8"},
                                           Layout{"ring:2", 1}, Layout{"ring:4", 1}, Layout{"ring:2 cp:2"},
                                           Layout{"cp:2 ring:2"}, Layout{"ring:2 cp:4"},
                                           Layout{"ring:2 tp:2"}, Layout{"ring:2 tp:2 sp"},
                                           Layout{"dp:2 ring:2 zero3"}, Layout{"ring:2 zero3"},
                                           Layout{"cp:2 ring:2 zero2"}, Layout{"ring:2 cp:2 tp:2 sp"},
                                           Layout{"ring:2 tpx:2 tpy:2"}),
                         title);
Layout windowed(const char* parallel, int window, int micro_batches = 1) {
  return {.parallel = parallel, .micro_batches = micro_batches, .window = window};
}
// Windows shorter than a part of the sequence along a ring, and longer, with biases.
INSTANTIATE_TEST_SUITE_P(Windows, LayoutSweep,
                         ::testing::Values(windowed("tp:2", 5), windowed("tp:4 sp", 5), windowed("cp:2", 5),
                                           windowed("cp:4", -5), windowed("ring:2", 5),
                                           windowed("ring:4", -3), windowed("ring:4", 11),
                                           windowed("ring:2 cp:2 tp:2 sp", -7),
                                           windowed("dp:2 tp:2 sp zero3", 5), windowed("tpx:2 tpy:2", 5),
                                           windowed("pp:2 tp:2", 5, 2), windowed("ring:2 pp:2", 5, 2)),
                         title);
INSTANTIATE_TEST_SUITE_P(AllHeadsOfTheirOwn, LayoutSweep,
                         ::testing::Values(Layout{"tp:8", 8}, Layout{"tp:8 sp", 8}), title);
INSTANTIATE_TEST_SUITE_P(
    Several, LayoutSweep,
    ::testing::Values(Layout{"dp:2 tp:2"}, Layout{"dp:2 tp:2 sp"}, Layout{"dp:2 tp:2 sp zero1"},
                      Layout{"dp:4 tp:2"}, Layout{"dp:4 tp:2 sp"}, Layout{"dp:2 tp:4"},
                      Layout{"dp:2 tp:4 sp"}, Layout{"dp:2 tp:4 sp zero1"}, Layout{"dp:2 tp:2 zero2"},
                      Layout{"dp:2 tp:4 sp zero3"}, Layout{"tpx:2 tpy:2"}, Layout{"tpx:4 tpy:2"},
                      Layout{"tpx:2 tpy:4"}, Layout{"dp:2 tpx:2 tpy:2 zero3"}, Layout{"dp:2 cp:2"},
                      Layout{"cp:2 tp:2"}, Layout{"cp:2 tp:2 sp"}, Layout{"dp:2 cp:2 tp:2 sp zero2"},
                      Layout{"cp:2 dp:2 zero1"}, Layout{"cp:2 tpx:2 tpy:2"}, Layout{"replicas:2 dp:2 zero1"},
                      Layout{"replicas:2 dp:2 zero3"}, Layout{"replicas:2 dp:2 tp:2 sp zero2"}),
    title);
INSTANTIATE_TEST_SUITE_P(
    Pipelines, LayoutSweep,
    ::testing::Values(Layout{"pp:2"}, Layout{"pp:2", 4, 2, 4}, Layout{"pp:2 gpipe", 4, 2, 4},
                      Layout{"pp:2 zero_bubble", 4, 2, 4}, Layout{"pp:2 interleaved chunks:2", 4, 4, 4},
                      Layout{"pp:4", 4, 4, 8}, Layout{"pp:4 zero_bubble", 4, 5, 8}, Layout{"pp:2", 4, 3, 2},
                      Layout{"pp:2", 4, 2, 4, true}, Layout{"pp:4 interleaved chunks:2", 4, 8, 8, true},
                      Layout{"pp:2 dp:2", 4, 2, 2}, Layout{"pp:2 dp:2 zero1", 4, 2, 2, true},
                      Layout{"dp:2 pp:2 zero2", 4, 2, 4, true},
                      Layout{"pp:2 dp:2 zero3 zero_bubble", 4, 2, 4}, Layout{"pp:2 tp:2 sp", 4, 2, 4},
                      Layout{"pp:2 tp:4", 4, 2, 4}, Layout{"pp:2 cp:4", 4, 2, 2},
                      Layout{"pp:2 cp:2 dp:2 zero_bubble", 4, 2, 2}, Layout{"pp:2 tpx:2 tpy:2", 4, 2, 2},
                      Layout{"cp:2 pp:2", 4, 2, 2}, Layout{"ring:2 pp:2", 4, 2, 2},
                      Layout{"pp:2 ring:2 cp:2 zero_bubble", 4, 2, 4},
                      Layout{"pp:2 dp:2 tp:2 sp zero1 interleaved chunks:2", 4, 4, 4, true}),
    title);

INSTANTIATE_TEST_SUITE_P(Gpt2, LayoutSweep,
                         ::testing::Values(gpt2("dp:2", 2), gpt2("tp:2 sp"), gpt2("tp:8 sp"),
                                           gpt2("dp:2 tp:2 sp zero1", 2), gpt2("dp:2 zero2", 2),
                                           gpt2("dp:4 zero3"), gpt2("tpx:2 tpy:2"), gpt2("tpx:1 tpy:4"),
                                           gpt2("dp:2 tpx:2 tpy:2 zero3"), gpt2("cp:4"), gpt2("ring:4"),
                                           gpt2("ring:2 cp:2 tp:2 sp"), gpt2("pp:2", 4),
                                           gpt2("pp:2 tp:2 sp zero_bubble", 4), gpt2("pp:2 ring:2 cp:2", 2)),
                         title);

}  // namespace
}  // namespace hyperrun::testing
