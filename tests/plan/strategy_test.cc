#include "runtime/plan/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "runtime/base/error.h"
#include "runtime/plan/space.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/plan/worlds.h"

namespace hyperrun::testing {
namespace {

TEST(Strategy, BecomesAJobAsAUserWouldWriteIt) {
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s[PlanAxis::kData] = 2, s[PlanAxis::kTensor] = 2;
  s.zero = 1, s.samples = 2, s.recompute = PlanRecompute::kFull, s.schedule = PlanSchedule::kZeroBubble;
  const Job job = job_of(planned_llama(8, 5, 16), s);
  EXPECT_EQ(job.parallel.mesh, (std::vector<MeshAxis>{{"pp", 2}, {"dp", 2}, {"tp", 2}}));
  EXPECT_EQ(job.parallel.presets, (std::vector<std::string>{"dp", "tp", "sp", "zero1"}));
  EXPECT_EQ(job.parallel.pipeline.schedule, "zero_bubble");
  EXPECT_EQ(job.parallel.pipeline.stages, (std::vector<PipelineSpec::Stage>{{0, 3}, {1, 2}}));
  EXPECT_EQ(job.training.micro_batches, 4);
  ASSERT_EQ(job.training.recompute.size(), 1U);
  EXPECT_EQ(job.training.recompute[0].last_layer, 4);
}

TEST(Strategy, FirstLayersOfADeviceRecomputeMore) {
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s.chunks = 2, s.schedule = PlanSchedule::kInterleaved, s.samples = 2;
  s.recompute = PlanRecompute::kSelective, s.extra_recompute_layers = 3;
  // Stages of 2, 2, 2 and 1 layers: device 0 has layers 0, 1, 4 and 5, device 1 has 2, 3 and 6.
  const Job job = job_of(planned_llama(2, 7, 8), s);
  EXPECT_EQ(job.training.recompute,
            (std::vector<RecomputeSpec>{{"full", 0, 4}, {"selective", 5, 5}, {"full", 6, 6}}));
  EXPECT_EQ(describe(s),
            "pp 2, interleaved of 2 chunks, 2 sequences a micro-batch, recompute selective, full in 3 layers "
            "of a device");
  s.recompute = PlanRecompute::kNone, s.extra_recompute_layers = 1;
  EXPECT_EQ(job_of(planned_llama(2, 7, 8), s).training.recompute,
            (std::vector<RecomputeSpec>{{"selective", 0, 0}, {"selective", 2, 2}}));
}

TEST(Strategy, EachIsALegalJobAndUnique) {
  const Job base = planned_mixture(8, 4, 16);
  std::set<std::string> seen;
  each_strategy(base, spaces().front(), [&](const Strategy& s) {
    const Job job = job_of(base, s);
    const std::string text = to_textproto(job);
    EXPECT_TRUE(seen.insert(text).second) << describe(s);
    if (seen.size() % 17 != 0) return;  // reading takes long
    EXPECT_NO_THROW(EXPECT_EQ(parse_job(text, "/planned").job.parallel.mesh, job.parallel.mesh)) << text;
  });
  EXPECT_GT(seen.size(), 1000U);
}

TEST(Strategy, IsReadFromTheJobThatItBecomes) {
  for (const Job& base : {planned_mixture(8, 6, 16), planned_llama(8, 7, 16)})
    each_strategy(base, spaces().front(), [&](const Strategy& even) {
      for (const auto& [first_stage_shortfall, last_stage_shortfall, extra_recompute_layers] :
           {std::tuple{0, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 0, 1}, {0, 0, 2}}) {
        Strategy s = even;
        s.first_stage_shortfall = first_stage_shortfall, s.last_stage_shortfall = last_stage_shortfall;
        if (extra_recompute_layers > 0 &&
            (!stronger_recompute(s.recompute) || extra_recompute_layers >= most_layers(s, base.model.layers)))
          continue;
        s.extra_recompute_layers = extra_recompute_layers;
        if (s[PlanAxis::kPipeline] == 1 && first_stage_shortfall + last_stage_shortfall > 0) continue;
        const Job job = job_of(base, s);
        const std::optional<Strategy> read = strategy_of(job);
        ASSERT_TRUE(read.has_value()) << describe(s);
        std::int32_t most = 0, least = base.model.layers;
        for (const PipelineSpec::Stage& stage : job.parallel.pipeline.stages)
          least = std::min(least, stage.layers);
        EXPECT_EQ(least_layers(s, base.model.layers), least) << describe(s);
        for (std::int32_t d = 0; d < s[PlanAxis::kPipeline]; ++d) {
          std::int32_t layers = 0;
          for (const PipelineSpec::Stage& stage : job.parallel.pipeline.stages)
            layers += stage.device == d ? stage.layers : 0;
          if (s[PlanAxis::kPipeline] == 1) layers = base.model.layers;
          EXPECT_EQ(layers_of_device(s, base.model.layers, d), layers) << describe(s);
          most = std::max(most, layers);
        }
        EXPECT_EQ(most_layers(s, base.model.layers), most) << describe(s);
        EXPECT_EQ(job_of(base, *read).parallel, job.parallel) << describe(s);
        EXPECT_EQ(job_of(base, *read).training, job.training) << describe(s);
      }
    });
  Job too_many = planned_llama(8, 4, 16);
  too_many.training.batch = 2;
  too_many.parallel.mesh = {{"dp", 8}};
  EXPECT_FALSE(strategy_of(too_many).has_value()) << "devices for its batch";
  Job with_rules = job_of(planned_llama(8, 4, 16), Strategy{});
  with_rules.parallel.rules.push_back({.tensor = "*"});
  EXPECT_FALSE(strategy_of(with_rules).has_value());
  Job other_axis = planned_llama(8, 4, 16);
  other_axis.parallel.mesh.front().name = "replicas";
  EXPECT_FALSE(strategy_of(other_axis).has_value());
}

TEST(Space, KnowsItsStrategies) {
  const Job job = planned_llama(8, 4, 16);
  const Space &all = spaces().front(), &megatron = space_named("megatron");
  Strategy s;
  s[PlanAxis::kData] = 2, s[PlanAxis::kTensor] = 2, s[PlanAxis::kTensorY] = 2;
  EXPECT_TRUE(has(all, job, s));
  EXPECT_FALSE(has(megatron, job, s));
  s[PlanAxis::kTensor] = 4, s[PlanAxis::kTensorY] = 1;
  std::ranges::reverse(s.order);
  EXPECT_TRUE(has(megatron, job, s));
  s.memory = PlanMemory::kHyperOffload;
  EXPECT_TRUE(has(all, job, s));
  EXPECT_FALSE(has(megatron, job, s));
  s.samples = 3;
  EXPECT_FALSE(has(all, job, s)) << "the batch does not divide so";
}

// With sixteen heads: layouts in which devices repeat heads are left out, and no others.
TEST(Space, NoDevicesRepeatAttention) {
  std::set<std::array<int, 3>> found;  // tensor, its second dimension, context
  for (const Strategy& s : shapes_of(planned_llama(32, 4, 32), spaces().front()))
    found.insert({s[PlanAxis::kTensor], s[PlanAxis::kTensorY], s[PlanAxis::kContext]});
  for (const int tensor : {1, 2, 4, 8, 16})
    for (const int y : {1, 2, 4, 8, 16, 32})
      for (const int context : {1, 2, 4, 8, 16, 32}) {
        const bool shared = tensor * y * context <= 16 && tensor <= 8 && (y == 1 || tensor > 1);
        EXPECT_EQ(found.contains({tensor, y, context}), shared) << tensor << " " << y << " " << context;
      }
}

TEST(Space, RestrictedSpacesHaveTheirFeatures) {
  const Job job = planned_mixture(8, 4, 16);
  std::map<std::string_view, std::int64_t> sizes;
  for (const Space& space : spaces())
    each_strategy(job, space, [&](const Strategy& s) {
      ++sizes[space.name];
      if (space.name == "megatron") {
        EXPECT_EQ(s[PlanAxis::kTensorY], 1);
        EXPECT_LE(s.zero, 1);
      }
      if (space.name == "deepspeed") {
        EXPECT_EQ(s[PlanAxis::kRing] * s[PlanAxis::kTensorY], 1);
        // Ulysses goes with ZeRO, not with tensor or pipeline parallelism.
        EXPECT_TRUE(s[PlanAxis::kContext] == 1 || s[PlanAxis::kTensor] * s[PlanAxis::kPipeline] == 1);
        EXPECT_LE(s.zero, s[PlanAxis::kPipeline] > 1 ? 1 : 3);
      }
    });
  EXPECT_LT(sizes["megatron"], sizes["all"]);
  EXPECT_LT(sizes["deepspeed"], sizes["all"]);
  EXPECT_THROW(space_named("nobody's"), Error);
}

TEST(Space, OrdersAreAllPermutationsOfTheAxesInUse) {
  Strategy s;
  s[PlanAxis::kPipeline] = 2, s[PlanAxis::kData] = 2, s[PlanAxis::kTensor] = 2;
  std::set<std::string> meshes;
  for (const Strategy& o : orders_of(s)) meshes.insert(describe(o));
  EXPECT_EQ(meshes.size(), 6U);
}

}  // namespace
}  // namespace hyperrun::testing
