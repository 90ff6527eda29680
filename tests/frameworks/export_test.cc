// What hyperrun writes in the terms of a framework is what it reads: out and in again is the identity.
#include "runtime/frameworks/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/frameworks/recomputation.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/plan/strategy.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kPlans = 1000;

constexpr const char* kDense = R"(
supernode { devices: 8 profile: "h100" }
model { layers: 24 hidden: 1024 heads: 16 kv_heads: 8 ffn: 2048 vocab: 32000 sequence: 1024 rope_theta: 500000 }
training { batch: 64 lr: 3e-4 steps: 100 precision: "bfloat16" }
)";
constexpr const char* kExperts = R"(
supernode { devices: 8 profile: "h100" }
model { layers: 24 hidden: 1024 heads: 16 kv_heads: 8 ffn: 2048 vocab: 32000 sequence: 1024
  experts { count: 64 choices: 4 ffn: 256 shared: 2 dense_layers: 1 aux_loss: 0.001 } }
training { batch: 64 lr: 3e-4 steps: 100 precision: "bfloat16" }
)";

Job job_of_text(const std::string& text) {
  return parse_job(text, "job.textproto", JobUse::kToBeForeseen).job;
}

// A strategy as the planner makes them, of any of the features that it has.
class RandomPlans {
 public:
  explicit RandomPlans(std::uint64_t seed) : random_(seed) {}

  Job next() {
    const Job base = parse_job(one_of({kDense, kExperts}), "job.textproto", JobUse::kToBePlanned).job;
    Strategy s;
    const bool experts = base.model.experts.count > 0;
    for (const PlanAxis a :
         {PlanAxis::kTensor, PlanAxis::kPipeline, PlanAxis::kRing, PlanAxis::kContext, PlanAxis::kData})
      s[a] = one_of({1, 1, 2, 4});
    if (experts) s[PlanAxis::kExpert] = one_of({1, 2, 4});
    if (experts && s[PlanAxis::kTensor] > 1)
      s.experts = one_of({PlanExperts::kRepeated, PlanExperts::kWidth, PlanExperts::kSpread});
    const std::int32_t axes = s.replicas() * s[PlanAxis::kRing] * s[PlanAxis::kContext];
    s.zero = axes > 1 ? one_of({0, 1, 2, 3}) : 0;
    s.samples = one_of({1, 2});
    choose_schedule(s, base.model.layers);
    s.recompute = one_of({PlanRecompute::kNone, PlanRecompute::kSelective, PlanRecompute::kFull});
    if (one_of({0, 0, 0, 1}) == 1) std::swap(s.order[0], s.order[1]), std::swap(s.order[1], s.order[2]);
    if (micro_batches(s, base.training.batch) == 0) return next();
    Job job = job_of(base, s);
    job.supernode.devices = static_cast<std::int32_t>(s.devices());
    // The base's pool and flash are those of eight devices.
    job.supernode.pool = job.supernode.flash = Bytes(0);
    // A mesh without sequence parallelism, and the first layers of each stage, are no strategies, but jobs.
    if (one_of({0, 0, 0, 1}) == 1 && s.experts != PlanExperts::kSpread)
      std::erase(job.parallel.presets, "sp");
    if (one_of({0, 0, 0, 1}) == 1) recompute_first_layers(job);
    return job_of_text(to_textproto(job));
  }

 private:
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random_() % list.size()));
  }

  void choose_schedule(Strategy& s, std::int32_t layers) {
    const std::int32_t stages = s[PlanAxis::kPipeline];
    if (stages == 1) return;
    s.schedule = one_of({PlanSchedule::k1f1b, PlanSchedule::k1f1b, PlanSchedule::kGpipe,
                         PlanSchedule::kInterleaved, PlanSchedule::kZeroBubble});
    if (s.schedule == PlanSchedule::kInterleaved) s.chunks = one_of({2, 3});
    if (one_of({0, 1}) == 1)
      s.first_stage_shortfall = one_of({0, 1, 2}), s.last_stage_shortfall = one_of({0, 1});
    if (least_layers(s, layers) < 1) s.first_stage_shortfall = s.last_stage_shortfall = 0;
  }

  static void recompute_first_layers(Job& job) {
    std::vector<std::int32_t> stages;
    for (const PipelineSpec::Stage& s : job.parallel.pipeline.stages) stages.push_back(s.layers);
    if (stages.empty()) stages.push_back(job.model.layers);
    job.training.recompute = recompute_specs({"full", 1, 1}, stages);
  }

  std::mt19937_64 random_;
};

std::string file_name(const Framework& framework) {
  switch (framework.notation) {
    case Notation::kToml: return "plan.toml";
    case Notation::kJson: return "plan.json";
    case Notation::kYaml: return "plan.yaml";
    case Notation::kArguments: return "plan.txt";
  }
  return "plan";
}

ImportedRun read_again(const ExportedRun& written, const Framework& framework, const Job& job,
                       const Folder& folder) {
  RunImport options{.from = std::string(framework.name), .devices = job.supernode.devices};
  // The flags of Megatron-LM describe the model; the others name one that has a config.json.
  if (framework.notation != Notation::kArguments)
    options.model = folder.put("config.json", to_config_json({job.model, DType::kBF16, {{0}}, 0}));
  return imported(file_name(framework), written.text, options);
}

// The model of a job that comes back. No flag says how much memory experts have that drop no token, so an
// import assumes an even load.
ModelSpec with_even_load(ModelSpec model) {
  if (model.experts.count > 0 && model.experts.capacity.factor == 0)
    model.experts.capacity = {.factor = 1, .drop = false};
  return model;
}

class OutAndIn : public ::testing::TestWithParam<FrameworkKind> {};

TEST_P(OutAndIn, IsTheIdentity) {
  const Framework& framework = framework_of(GetParam());
  const Folder folder;
  RandomPlans plans(20 + static_cast<std::uint64_t>(GetParam()));
  int said = 0, drawn = 0;
  for (; said < kPlans && drawn < 400'000; ++drawn) {
    const Job job = plans.next();
    const ExportedRun written = export_run(job, framework);
    if (!written.cannot.empty()) continue;
    ++said;
    const ImportedRun run = read_again(written, framework, job, folder);
    ASSERT_EQ(run.job.parallel, job.parallel) << written.text << run.text << to_textproto(job);
    ASSERT_EQ(run.job.training, job.training) << written.text << run.text << to_textproto(job);
    ASSERT_EQ(run.job.memory, job.memory);
    ASSERT_EQ(run.job.supernode.devices, job.supernode.devices);
    if (framework.notation == Notation::kArguments) {
      ASSERT_EQ(run.job.model, with_even_load(job.model)) << written.text;
    }
    for (const Finding& f : run.findings)
      ASSERT_NE(f.verdict, Verdict::kGap) << f.setting.name << ": " << f.meaning;
  }
  EXPECT_EQ(said, kPlans) << "of " << drawn << " drawn";
}

INSTANTIATE_TEST_SUITE_P(Export, OutAndIn,
                         ::testing::Values(FrameworkKind::kMegatron, FrameworkKind::kMindspeed,
                                           FrameworkKind::kTorchtitan, FrameworkKind::kDeepspeed,
                                           FrameworkKind::kHyperParallel),
                         [](const auto& info) {
                           std::string name(framework_of(info.param).title);
                           std::erase(name, '-');
                           return name;
                         });

TEST(Export, ModelsOfAllFamiliesComeBack) {
  for (
      const char* model :
      {R"(name: "qwen3" layers: 4 hidden: 256 heads: 4 kv_heads: 2 head_dim: 128 vocab: 1000 sequence: 128 norm_eps: 1e-6 tied_head: true)",
       R"(name: "mixtral" layers: 4 hidden: 256 heads: 4 vocab: 1000 sequence: 128 experts { count: 8 ffn: 512 aux_loss: 0.02 })",
       R"(name: "gpt2" layers: 4 hidden: 256 heads: 4 vocab: 1000 sequence: 128 positions: 1024)",
       R"(name: "mistral" layers: 4 hidden: 256 heads: 4 vocab: 1000 sequence: 128 window: 32)",
       R"(name: "qwen3" layers: 4 hidden: 256 heads: 4 vocab: 1000 sequence: 128 window: 32
           window_layers { first_layer: 1 last_layer: 2 })",
       R"(layers: 4 hidden: 256 heads: 4 vocab: 1000 sequence: 128 rope_scaling { factor: 8 original_sequence: 8192 })",
       R"(name: "deepseek_v3" layers: 4 hidden: 256 heads: 8 vocab: 1024 sequence: 128
           latent { q_rank: 96 kv_rank: 64 nope_dim: 32 rope_dim: 16 value_dim: 32 }
           experts { count: 16 choices: 4 ffn: 96 shared: 1 dense_layers: 1 scoring: "sigmoid" scale: 2.5 bias_rate: 1e-3 groups: 4 group_choices: 2 }
           mtp { layers: 1 })"}) {
    const Job job = job_of_text(std::string("supernode { devices: 1 profile: \"h100\" } model { ") + model +
                                " } training { batch: 4 }");
    const ExportedRun written = export_run(job, framework_of(FrameworkKind::kMegatron));
    ASSERT_THAT(written.cannot, IsEmpty());
    RunImport options{.devices = 1};
    EXPECT_EQ(imported("f.txt", written.text, options).job.model, with_even_load(job.model)) << written.text;
  }
}

TEST(Export, WhatCannotBeSaidIsNamed) {
  const auto cannot = [](const std::string& parallel, FrameworkKind kind) {
    return export_run(job_of_text(std::string(kDense) + "parallel { " + parallel + " }"), framework_of(kind))
        .cannot;
  };
  const std::string zero_bubble =
      R"(mesh { name: "pp" size: 2 } mesh { name: "dp" size: 4 } presets: ["dp", "zero1"] pipeline { axis: "pp" schedule: "zero_bubble" })";
  EXPECT_THAT(cannot(zero_bubble, FrameworkKind::kMegatron), ElementsAre("the schedule zero_bubble"));
  EXPECT_THAT(cannot(zero_bubble, FrameworkKind::kTorchtitan),
              ElementsAre("ZeRO 1", "a zero bubble of one stage a device"));
  EXPECT_THAT(cannot(R"(mesh { name: "tpx" size: 4 } mesh { name: "tpy" size: 2 } presets: "tp2d")",
                     FrameworkKind::kMegatron),
              ElementsAre("an axis tpx"));
  EXPECT_THAT(cannot(R"(mesh { name: "ring" size: 8 } presets: "ring")", FrameworkKind::kDeepspeed),
              ElementsAre("context parallelism round a ring"));
}

TEST(Export, MegatronPadsTheVocabularyToItself) {
  const auto written = [](const std::string& vocab, FrameworkKind kind) {
    return export_run(
               job_of_text(
                   "supernode { devices: 2 profile: \"h100\" } model { layers: 2 hidden: 256 heads: 4 "
                   "sequence: 128 vocab: " +
                   vocab +
                   R"( } parallel { mesh { name: "tp" size: 2 } presets: "tp" } training { batch: 4 })"),
               framework_of(kind))
        .text;
  };
  const std::string text = written("32008", FrameworkKind::kMegatron);
  EXPECT_THAT(text, HasSubstr("--vocab-size 32008 "));
  EXPECT_THAT(text, HasSubstr("--make-vocab-size-divisible-by 4 "));
  EXPECT_THAT(text, Not(HasSubstr("--padded-vocab-size")));
  EXPECT_EQ(imported("f.txt", text, {.devices = 2}).job.model.vocab, 32008);
  EXPECT_THAT(written("32007", FrameworkKind::kMegatron), HasSubstr("--make-vocab-size-divisible-by 1 "));
  EXPECT_THAT(written("32008", FrameworkKind::kMindspeed), HasSubstr("--padded-vocab-size 32008"));
}

TEST(Export, TorchtitanNamesItsFlavor) {
  const Job job = job_of_text(R"(supernode { devices: 8 profile: "h100" }
    model { layers: 32 hidden: 4096 heads: 32 kv_heads: 8 ffn: 14336 vocab: 128256 sequence: 8192 rope_theta: 500000 }
    parallel { mesh { name: "dp" size: 8 } presets: ["dp", "zero3"] } training { batch: 8 })");
  const std::string toml = export_run(job, framework_of(FrameworkKind::kTorchtitan)).text;
  EXPECT_THAT(toml, HasSubstr("flavor = \"8B\""));
  EXPECT_THAT(toml, HasSubstr("[parallelism]\n"));
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
