// Configurations in TOML, JSON and YAML become jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> mesh(const ImportedRun& run) {
  std::vector<std::string> list;
  for (const MeshAxis& axis : run.job.parallel.mesh)
    list.push_back(axis.name + " " + std::to_string(axis.size));
  return list;
}

std::string assumed(const ImportedRun& run, std::string_view field) {
  for (const Assumption& a : run.assumptions)
    if (a.field == field) return a.text;
  return "";
}

constexpr const char* kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
  "intermediate_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4,
  "vocab_size": 1024, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5})";

constexpr const char* kToml = R"([job]
description = "a run"
[model]
name = "llama3"
flavor = "8B"
[optimizer]
lr = 3e-4
[lr_scheduler]
warmup_steps = 2_000
[training]
local_batch_size = 8
seq_len = 4096
steps = 10_000
[parallelism]
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
[float8]
enable_fsdp_float8_all_gather = true
)";

TEST(Torchtitan, ATomlBecomesAJob) {
  const ImportedRun run = imported("llama3_8b.toml", kToml, {.devices = 16});
  EXPECT_EQ(run.framework->kind, FrameworkKind::kTorchtitan);
  EXPECT_EQ(run.job.model.layers, 32);
  EXPECT_EQ(run.job.model.sequence, 4096);
  EXPECT_THAT(mesh(run), ElementsAre("pp 2", "dp 4", "tp 2"));
  EXPECT_THAT(run.job.parallel.presets,
              ElementsAre("dp", "tp", "sp", "zero2"));  // no resharding beside a pipeline
  EXPECT_EQ(run.job.parallel.pipeline.chunks, 2);
  // 34 with embedding and head in four stages: 9, 9, 8, 8, less one at each end.
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(0).layers, 8);
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(1).layers, 9);
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(3).layers, 7);
  EXPECT_EQ(run.job.training.batch, 32);
  EXPECT_EQ(run.job.training.micro_batches, 4);
  EXPECT_EQ(run.job.training.warmup_steps, 2000);
  EXPECT_EQ(run.job.training.recompute.at(0).policy, "selective");
  EXPECT_EQ(finding_of(run, "float8.enable_fsdp_float8_all_gather").verdict, Verdict::kGap);
  EXPECT_EQ(finding_of(run, "training.steps").setting.place, "llama3_8b.toml:13:1");
  EXPECT_THAT(refusal("t.toml", kToml), HasSubstr("error[missing-field]: nothing says how many devices"));
  EXPECT_THAT(refusal("t.toml", kToml, {.devices = 6}),
              HasSubstr("error[bad-layout]: 6 devices cannot be divided"));
}

TEST(Torchtitan, PassesOfThePipelineThatAreJoinedAreTold) {
  const auto toml = [](const std::string& batch) {
    return "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 16\n" + batch +
           "seq_len = 128\n[parallelism]\npipeline_parallel_degree = 2\n";
  };
  const ImportedRun run = imported("t.toml", toml("global_batch_size = 256\n"), {.devices = 16});
  EXPECT_EQ(run.job.training.micro_batches, 32);
  EXPECT_THAT(assumed(run, "training.micro_batches"), HasSubstr("2 passes of 16 each"));
  EXPECT_EQ(assumed(imported("t.toml", toml(""), {.devices = 16}), "training.micro_batches"), "");
}

TEST(Torchtitan, ExpertsTakeTheContextFirst) {
  const auto toml = [](const std::string& more) {
    return "[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[training]\nlocal_batch_size = 1\nseq_len = "
           "4096\n[parallelism]\n" +
           more;
  };
  EXPECT_THAT(mesh(imported("t.toml", toml("expert_parallel_degree = 8"), {.devices = 16})),
              ElementsAre("dp 2", "ep 8"));
  const ImportedRun spread =
      imported("t.toml", toml("expert_parallel_degree = 8\ntensor_parallel_degree = 4"), {.devices = 16});
  EXPECT_THAT(mesh(spread), ElementsAre("dp 2", "ep 2", "tp 4"));
  EXPECT_THAT(spread.job.parallel.presets, ElementsAre("dp", "ep", "tp", "sp", "ep_tp", "zero3"));
  const ImportedRun context =
      imported("t.toml", toml("expert_parallel_degree = 8\ncontext_parallel_degree = 2"), {.devices = 16});
  EXPECT_THAT(mesh(context), ElementsAre("dp 2", "ep 4", "ring 2"));
  EXPECT_THAT(context.job.parallel.rules.at(0).dims.at(0).axes, ElementsAre("ep", "ring"));
}

constexpr const char* kJson = R"({
  // ZeRO 2 with the optimizer's state in the pool
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": 1.0,
  "bf16": {"enabled": true},
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "weight_decay": 0.1}},
  "zero_optimization": {
	"stage": 2,
	"offload_optimizer": {"device": "cpu", "pin_memory": true},
	"reduce_bucket_size": 5e8
  },
  "wall_clock_breakdown": false
})";

TEST(Deepspeed, AJsonBecomesAJob) {
  const Folder folder;
  RunImport options{.devices = 8, .model = folder.put("config.json", kConfig)};
  const ImportedRun run = imported("ds_config.json", kJson, options);
  EXPECT_EQ(run.job.model.layers, 8);
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "zero2"));
  EXPECT_EQ(run.job.training.micro_batches, 4);
  EXPECT_EQ(run.job.training.beta2, 0.95);
  EXPECT_THAT(run.job.memory.tensors, ElementsAre("optimizer"));
  EXPECT_EQ(finding_of(run, "zero_optimization.stage").setting.place, "ds_config.json:10:2");
  EXPECT_EQ(finding_of(run, "gradient_accumulation_steps").verdict, Verdict::kNoMatter);
  options.devices = 3;
  EXPECT_THAT(refusal("ds.json", kJson, options), HasSubstr("a batch of 64 sequences cannot be cut"));
  EXPECT_THAT(refusal("ds.json", kJson, {.devices = 8}), HasSubstr("--model PATH"));
  EXPECT_THAT(refusal("config.json", kConfig), HasSubstr("a model's config.json"));
}

TEST(LlamaFactory, AYamlNamesAFileOfDeepspeed) {
  const Folder folder;
  folder.put("examples/deepspeed/ds_z3_config.json",
             R"({"train_batch_size": "auto", "zero_optimization": {"stage": 3}})");
  const std::string yaml =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nfinetuning_type: full\ndeepspeed: "
      "examples/deepspeed/ds_z3_config.json\n"
      "cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nlearning_rate: "
      "1.0e-5\nbf16: true\nlogging_steps: 10\n";
  const std::string path = folder.put("examples/train_full/llama3.yaml", yaml);
  const ImportedRun run = import_run(path, {.devices = 8});
  EXPECT_EQ(run.framework->kind, FrameworkKind::kLlamaFactory);
  EXPECT_EQ(run.job.model.layers, 32);
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "zero3"));
  EXPECT_EQ(run.job.training.batch, 16);
  const ImportedRun lora = imported("x.yaml",
                                    "model_name_or_path: Qwen/Qwen3-8B\nfinetuning_type: lora\nlora_rank: "
                                    "8\nper_device_train_batch_size: 1\n",
                                    {.devices = 2});
  EXPECT_EQ(finding_of(lora, "finetuning_type").verdict, Verdict::kGap);
  EXPECT_EQ(finding_of(lora, "lora_rank").verdict, Verdict::kGap);
}

std::string with_factory(const std::string& more) { return "model_name_or_path: Qwen/Qwen3-8B\n" + more; }

TEST(LlamaFactory, LayersRecomputeUnlessThatIsOff) {
  const auto policy = [](const std::string& more) {
    const ImportedRun run =
        imported("x.yaml", with_factory("finetuning_type: full\n" + more), {.devices = 2});
    return run.job.training.recompute.empty() ? "none" : run.job.training.recompute[0].policy;
  };
  EXPECT_EQ(policy(""), "full");
  EXPECT_EQ(policy("disable_gradient_checkpointing: false\n"), "full");
  EXPECT_EQ(policy("gradient_checkpointing: false\n"), "full");
  EXPECT_EQ(policy("disable_gradient_checkpointing: true\n"), "none");
  EXPECT_EQ(policy("disable_gradient_checkpointing: true\ngradient_checkpointing: true\n"), "full");
  const ImportedRun run = imported("x.yaml", with_factory("finetuning_type: full\n"), {.devices = 2});
  EXPECT_THAT(assumed(run, "training.recompute"), HasSubstr("full, the default of LLaMA-Factory"));
}

TEST(LlamaFactory, WhatIsLeftOpenIsAsTheTrainerHasIt) {
  const ImportedRun run = imported("x.yaml", with_factory("finetuning_type: full\n"), {.devices = 2});
  const TrainingSpec& t = run.job.training;
  EXPECT_EQ(t.lr, 5e-5);
  EXPECT_EQ(t.weight_decay, 0);
  EXPECT_EQ(t.clip_norm, 1);
  EXPECT_EQ(t.beta2, 0.999);
  EXPECT_EQ(t.batch, 16);
  EXPECT_EQ(t.micro_batches, 1);
  EXPECT_EQ(t.precision, kBfloat16);
  EXPECT_EQ(run.job.model.sequence, 2048);
  for (const char* field : {"training.lr", "training.micro_batches"})
    EXPECT_THAT(assumed(run, field), HasSubstr("the default of Hugging Face's Trainer")) << field;
  EXPECT_THAT(assumed(run, "training.precision"), HasSubstr("bfloat16"));
  EXPECT_THAT(assumed(run, "model.sequence"), HasSubstr("cutoff_len"));
  EXPECT_THAT(assumed(run, "parallel.presets"), HasSubstr("a file of accelerate is not read"));
}

TEST(LlamaFactory, WhatAStageHasBesideIsTold) {
  const auto found = [](const std::string& more, const char* name) {
    return finding_of(imported("x.yaml", with_factory(more), {.devices = 2}), name);
  };
  for (const char* stage : {"sft", "pt"})
    EXPECT_EQ(found(std::string("stage: ") + stage + "\n", "stage").verdict, Verdict::kTaken);
  for (const auto& [stage, part] : std::vector<std::pair<std::string, std::string>>{
           {"dpo", "reference model"}, {"kto", "reference model"}, {"ppo", "generation"}, {"rm", "head"}}) {
    const Finding f = found("stage: " + stage + "\n", "stage");
    EXPECT_EQ(f.verdict, Verdict::kGap);
    EXPECT_THAT(f.meaning, HasSubstr(part));
  }
  EXPECT_THAT(found("finetuning_type: lora\n", "finetuning_type").meaning, HasSubstr("adapters alone"));
  // Adapters are trained where nothing is said.
  const ImportedRun silent = imported("x.yaml", with_factory("stage: sft\n"), {.devices = 2});
  ASSERT_EQ(silent.left_out.size(), 1U);
  EXPECT_THAT(silent.left_out[0].text, HasSubstr("lora, the default"));
}

TEST(Deepspeed, AutoIsWhatTheTrainerIsTold) {
  const Folder folder;
  const RunImport options{.devices = 8, .model = folder.put("config.json", kConfig)};
  const ImportedRun run = imported("ds.json", R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "weight_decay": "auto"}},
    "zero_optimization": {"stage": 2}})",
                                   options);
  EXPECT_EQ(run.job.training.precision, kBfloat16);
  EXPECT_EQ(run.job.training.lr, 5e-5);
  EXPECT_EQ(run.job.training.weight_decay, 0);
  EXPECT_EQ(run.job.training.clip_norm, 1);
  EXPECT_EQ(run.job.training.batch, 64);
  for (const char* field : {"training.precision", "training.lr", "training.micro_batches"})
    EXPECT_THAT(assumed(run, field), HasSubstr("Hugging Face's Trainer")) << field;
  // Without "auto" the file is DeepSpeed's own.
  const ImportedRun own =
      imported("ds.json", R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})", options);
  EXPECT_EQ(own.job.training.precision, kFloat32);
  EXPECT_EQ(own.job.training.lr, 0);
  // What the file says itself stands.
  const ImportedRun half = imported(
      "ds.json",
      R"({"train_batch_size": "auto", "fp16": {"enabled": false}, "zero_optimization": {"stage": 2}})",
      options);
  EXPECT_EQ(half.job.training.precision, kFloat32);
}

TEST(HyperParallel, AYamlBecomesAJob) {
  const std::string yaml = R"(model:
  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B
  torch_dtype: bfloat16
training: {train_iters: 100, global_batch_size: 16, micro_batch_size: 1}
accelerator: {tp_size: 2, cp_size: 4, ep_size: 2, pp_size: 2, pp_schedule: 1f1b, sequence_parallel: true}
fsdp_config:
  dp_shard_size: 8
  reshard_after_forward: true
plan_overrides:
  - match: "*.self_attn"
    inner_wrapper: {_target_: some.hybrid_cp_wrapper, ulysses_degree: 2}
activation_checkpoint: {mode: full}
dataset: {data_config: {seq_length: 4096}}
optimizer: {adamw_config: {adamw_lr: 1.0e-5, adamw_betas: [0.9, 0.95]}}
)";
  const ImportedRun run = imported("train.yaml", yaml);
  EXPECT_EQ(run.framework->kind, FrameworkKind::kHyperParallel);
  EXPECT_EQ(run.job.supernode.devices, 32);
  EXPECT_THAT(mesh(run), ElementsAre("pp 2", "ep 2", "ring 2", "cp 2", "tp 2"));
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("ep", "ring", "cp", "tp", "sp", "ep_tp", "zero3"));
  EXPECT_EQ(run.job.training.micro_batches, 8);
  EXPECT_EQ(run.job.training.recompute.at(0).policy, "full");
}

TEST(Mindformers, AYamlBecomesAJob) {
  const std::string yaml = R"(run_mode: 'train'
runner_config: {epochs: 2, batch_size: 2}
parallel_config: {data_parallel: 2, model_parallel: 4, pipeline_stage: 2, micro_batch_num: 4, use_seq_parallel: True}
parallel: {enable_parallel_optimizer: True}
recompute_config: {recompute: True}
lr_schedule: {learning_rate: 1.e-5}
model:
  model_config: {num_layers: 16, hidden_size: 512, num_heads: 8, n_kv_heads: 4, intermediate_size: 1024, vocab_size: 32000, seq_length: 1024, compute_dtype: "bfloat16"}
)";
  const ImportedRun run = imported("pretrain.yaml", yaml);
  EXPECT_EQ(run.framework->kind, FrameworkKind::kMindformers);
  EXPECT_EQ(run.job.supernode.devices, 16);
  EXPECT_THAT(mesh(run), ElementsAre("pp 2", "dp 2", "tp 4"));
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "tp", "sp", "zero1"));
  EXPECT_EQ(run.job.training.batch, 16);
  EXPECT_EQ(run.job.training.micro_batches, 4);
  EXPECT_EQ(run.job.model.vocab, 32000);
}

TEST(MegatronBridge, AYamlHasNamesOfArguments) {
  const std::string yaml =
      "model:\n  num_layers: 8\n  hidden_size: 512\n  num_attention_heads: 8\n  seq_length: 256\n  "
      "tensor_model_parallel_size: 2\n  gated_linear_unit: true\n"
      "  normalization: RMSNorm\n  position_embedding_type: rope\n  vocab_size: 1024\n  "
      "virtual_pipeline_model_parallel_size: null\ntrain:\n  train_iters: 10\n  global_batch_size: 16\n  "
      "micro_batch_size: 1\n"
      "ddp: {use_distributed_optimizer: true}\n";
  const ImportedRun run = imported("conf.yaml", yaml, {.devices = 8});
  EXPECT_EQ(run.framework->kind, FrameworkKind::kMegatronBridge);
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "tp", "zero1"));
  EXPECT_EQ(run.job.training.steps, 10);
}

TEST(Megatron, AYamlOfArgumentsIsRead) {
  const ImportedRun run =
      imported("model_config.yaml",
               "ENV_VARS:\n  X: 1\nMODEL_ARGS:\n  --num-layers: 8\n  --hidden-size: 512\n  "
               "--num-attention-heads: 8\n  --seq-length: 128\n  --vocab-size: 1024\n  --micro-batch-size: "
               "1\n  --bf16: true\n  --use-distributed-optimizer: true\nTEST_TYPE: regular\n",
               {.devices = 4});
  EXPECT_EQ(run.job.model.layers, 8);
  EXPECT_EQ(run.job.training.precision, kBfloat16);
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
