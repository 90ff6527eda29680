// Scripts of Megatron-LM and MindSpeed-LLM become jobs: each field by the meaning that the framework gives
// its flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A job of kArguments on eight devices with further flags.
ImportedRun with(const std::string& flags, std::int32_t devices = 8) {
  RunImport options;
  options.devices = devices;
  return imported("flags.txt", kArguments + flags, options);
}

std::vector<std::string> mesh(const ImportedRun& run) {
  std::vector<std::string> list;
  for (const MeshAxis& axis : run.job.parallel.mesh)
    list.push_back(axis.name + " " + std::to_string(axis.size));
  return list;
}

constexpr const char* kScript = R"(#!/bin/bash
# A launch script as they are written.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=${GPUS:-8}
NNODES=2
TP=2; PP=2
LAYERS=16
LOAD=$1
DISTRIBUTED="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank ${RANK:-0}"
MODEL=(
    --num-layers $LAYERS          # blocks
    --hidden-size $((8 * 128))
    --num-attention-heads 8
    --group-query-attention --num-query-groups 4
    --ffn-hidden-size 2816
    --seq-length 512 --max-position-embeddings 4096
    --position-embedding-type rope --rotary-base 500000
    --normalization RMSNorm --norm-epsilon 1e-6
    --swiglu --disable-bias-linear
    --vocab-size 32000
)
if [ $PP -gt 1 ]; then
  MODEL+=(--num-layers-per-virtual-pipeline-stage 2)
fi
TRAIN="--micro-batch-size 2 --global-batch-size 64 --lr 3.0e-4 --min-lr 3e-5 \
  --lr-warmup-fraction .01 --train-samples 6400 --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0 --bf16"
torchrun $DISTRIBUTED pretrain_gpt.py ${MODEL[@]} $TRAIN --log-interval 10 --load $LOAD \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} --sequence-parallel \
  --use-distributed-optimizer --recompute-granularity full --recompute-method block --recompute-num-layers 1 \
  --some-flag-of-ours 3 2>&1 | tee log.txt
)";

TEST(Megatron, AScriptBecomesAJob) {
  const ImportedRun run = imported("train.sh", kScript);
  const Job& job = run.job;
  EXPECT_EQ(run.framework->kind, FrameworkKind::kMegatron);
  EXPECT_EQ(job.supernode.devices, 16);
  EXPECT_EQ(job.model.layers, 16);
  EXPECT_EQ(job.model.hidden, 1024);
  EXPECT_EQ(job.model.kv_heads, 4);
  EXPECT_EQ(job.model.vocab, 32000);  // a multiple of 128 x 2 already
  EXPECT_EQ(job.model.rope_theta, 500000);
  EXPECT_EQ(job.model.norm_eps, 1e-6);
  EXPECT_TRUE(job.model.tied_head);
  EXPECT_THAT(mesh(run), ElementsAre("pp 2", "dp 4", "tp 2"));
  EXPECT_THAT(job.parallel.presets, ElementsAre("dp", "tp", "sp", "zero1"));
  EXPECT_EQ(job.parallel.pipeline.schedule, "interleaved");
  EXPECT_EQ(job.parallel.pipeline.chunks, 4);
  EXPECT_EQ(job.training.batch, 64);
  EXPECT_EQ(job.training.micro_batches, 8);
  EXPECT_EQ(job.training.steps, 100);
  EXPECT_EQ(job.training.warmup_steps, 1);
  EXPECT_EQ(job.training.precision, kBfloat16);
  EXPECT_THAT(job.training.recompute, SizeIs(8));  // the first layer of each of eight chunks
  EXPECT_EQ(job.training.recompute[1].first_layer, 2);
}

TEST(Megatron, EachFlagIsTold) {
  const ImportedRun run = imported("train.sh", kScript);
  EXPECT_EQ(finding_of(run, "num-layers").setting.place, "train.sh:11:5");
  EXPECT_EQ(finding_of(run, "num-layers").meaning, "model.layers");
  EXPECT_EQ(finding_of(run, "log-interval").verdict, Verdict::kNoMatter);
  EXPECT_EQ(finding_of(run, "load").verdict, Verdict::kNoMatter);
  const Finding unknown = finding_of(run, "some-flag-of-ours");
  EXPECT_EQ(unknown.verdict, Verdict::kGap);
  EXPECT_THAT(unknown.meaning, HasSubstr("not known"));
  const std::string report = import_report(run, "train.sh");
  for (const Finding& f : run.findings) EXPECT_THAT(report, HasSubstr(f.setting.name));
  EXPECT_THAT(run.text, HasSubstr("  # --num-layers 16, train.sh:11:5\n"));
  // A job that is handed on says nothing of the folders of the machine on which it was imported.
  EXPECT_EQ(imported("/home/me/train.sh", kScript).text, run.text);
}

TEST(Megatron, TheJobHasTheSoftwareOfItsFramework) {
  const ImportedRun run = with("--overlap-grad-reduce --ddp-bucket-size 1000 --no-overlap-p2p-communication");
  EXPECT_EQ(run.job.supernode.software, "megatron");
  EXPECT_THAT(run.text, HasSubstr("software: \"megatron\""));
  EXPECT_THAT(import_report(run, "flags.txt"), HasSubstr("\"megatron\": what the framework keeps in HBM"));
  EXPECT_EQ(finding_of(run, "overlap-grad-reduce").verdict, Verdict::kGap);
  EXPECT_THAT(finding_of(run, "overlap-grad-reduce").meaning, HasSubstr("overlaps nothing"));
  for (const char* name : {"ddp-bucket-size", "no-overlap-p2p-communication"}) {
    EXPECT_EQ(finding_of(run, name).verdict, Verdict::kNoMatter) << name;
    EXPECT_THAT(finding_of(run, name).meaning, HasSubstr("none does with the software")) << name;
  }
  // a100_megatron is the machine and what runs on it.
  const ImportedRun fitted =
      imported("flags.txt", kArguments + "--overlap-grad-reduce", {.devices = 8, .profile = "a100_megatron"});
  EXPECT_EQ(fitted.job.supernode.software, "");
  EXPECT_EQ(finding_of(fitted, "overlap-grad-reduce").verdict, Verdict::kNoMatter);
}

TEST(Megatron, AFlagThatIsOffIsNoGap) {
  const ImportedRun run = with(
      "--hidden-dropout 0.0 --attention-dropout 0.1 --lr-decay-style cosine --num-layer 3 "
      "--moe-z-loss-coeff 0 --z-loss 1");
  EXPECT_EQ(finding_of(run, "hidden-dropout").verdict, Verdict::kTaken);
  EXPECT_EQ(finding_of(run, "attention-dropout").verdict, Verdict::kGap);
  EXPECT_EQ(finding_of(run, "lr-decay-style").verdict, Verdict::kTaken);
  EXPECT_EQ(finding_of(run, "z-loss").verdict, Verdict::kGap);
  EXPECT_EQ(finding_of(run, "moe-z-loss-coeff").verdict, Verdict::kNoMatter);
  EXPECT_THAT(finding_of(run, "num-layer").meaning, HasSubstr("did you mean num-layers"));
}

TEST(Megatron, ContradictionsHaveBothPlaces) {
  RunImport options;
  options.devices = 8;
  const std::string twice = refusal("f.txt", "--num-layers 2\n--num-layers 4\n", options);
  EXPECT_THAT(twice, HasSubstr("f.txt:2:1: error[bad-value]"));
  EXPECT_THAT(twice, HasSubstr("f.txt:1:1"));
  const std::string world = refusal(
      "f.txt", kArguments + "--tensor-model-parallel-size 3\n--pipeline-model-parallel-size 2", options);
  EXPECT_THAT(
      world,
      HasSubstr("f.txt:6:1: error[bad-layout]: 8 devices cannot be divided into pp 2 x cp 1 x tp 3 = 6"));
  EXPECT_THAT(world, HasSubstr("pipeline-model-parallel-size 2 (f.txt:7:1)"));
  options.devices = 24;
  const std::string batch = refusal("f.txt", kArguments, options);
  EXPECT_THAT(
      batch,
      HasSubstr(
          "error[bad-value]: a batch of 32 sequences cannot be cut into micro-batches of 1 on 24 replicas"));
  EXPECT_THAT(batch, HasSubstr("global-batch-size 32 (f.txt:5:26)"));
  EXPECT_THAT(batch, HasSubstr("micro-batch-size 1 (f.txt:5:5)"));
}

TEST(Megatron, TheSameValueTwiceIsOne) {
  EXPECT_EQ(with("--num-layers 8 --seq-length=256").job.model.layers, 8);
}

TEST(Megatron, WhatOnlyARunKnowsIsNamed) {
  const std::string script = "torchrun --nproc_per_node 8 t.py --num-layers $LAYERS --lr 1e-4\n";
  const std::string message = refusal("t.sh", script);
  EXPECT_THAT(message, HasSubstr("t.sh:1:34: error[bad-value]: num-layers is \"$LAYERS\""));
  EXPECT_THAT(message, HasSubstr("--set LAYERS="));
  EXPECT_THAT(refusal("t.sh", "torchrun --nproc_per_node 8 t.py --num-layers $3 --lr 1e-4\n"),
              HasSubstr("--args \"...\"; $3 is number 3"));
  EXPECT_THAT(refusal("t.sh", "torchrun --nproc_per_node 8 t.py --num-layers $(wc -l < layers) --lr 1e-4\n"),
              AllOf(HasSubstr("num-layers is \"$(wc -l < layers)\""),
                    HasSubstr("write the value in place of $(wc -l < layers)")));
  EXPECT_THAT(refusal("t.sh", "torchrun --nproc_per_node 8 t.py --lr 1e-4 --num-layers\n"),
              HasSubstr("num-layers has no value"));
  RunImport options;
  options.variables = {{"LAYERS", "4"}};
  EXPECT_THAT(refusal("t.sh", script, options), HasSubstr("hidden-size is not there"));
}

TEST(Megatron, DevicesAreThoseOfTheLauncher) {
  const auto devices = [](const std::string& launcher, const std::string& above = "") {
    return imported("t.sh", above + "ARGS=\"" + kArguments + "\"\n" + launcher + " pretrain_gpt.py $ARGS\n")
        .job.supernode.devices;
  };
  EXPECT_EQ(devices("torchrun --nproc-per-node=4 --nnodes=2"), 8);
  EXPECT_EQ(devices("python -m torch.distributed.launch --nproc_per_node 16"), 16);
  EXPECT_EQ(devices("deepspeed --num_gpus 8 --num_nodes 4"), 32);
  EXPECT_EQ(devices("srun -N 2 --ntasks-per-node=8 python"), 16);
  EXPECT_EQ(devices("mpirun -np 8 python"), 8);
  EXPECT_EQ(devices("srun python", "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\n"), 32);
  EXPECT_EQ(devices("torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES", "#!/bin/bash\n#SBATCH -N 2\n"), 16);
}

TEST(Megatron, DevicesThatOnlyARunCountsHaveARemedy) {
  std::string flags = kArguments;
  std::ranges::replace(flags, '\n', ' ');
  for (const char* count : {"gpu", "auto", "$(nvidia-smi -L | wc -l)"}) {
    const std::string script =
        std::string("torchrun --nproc_per_node ") + count + " pretrain_gpt.py " + flags;
    EXPECT_THAT(refusal("t.sh", script), AllOf(HasSubstr("--devices N"), Not(HasSubstr("-2147483648"))))
        << count;
    EXPECT_EQ(imported("t.sh", script, {.devices = 4}).job.supernode.devices, 4);
  }
  EXPECT_THAT(
      refusal("t.sh", "torchrun --nproc_per_node $(nvidia-smi -L | wc -l) pretrain_gpt.py " + flags),
      HasSubstr("t.sh:1:10: error[bad-value]: per-node of the launcher is \"$(nvidia-smi -L | wc -l)\""));
  // The variable that takes the count may be given.
  const std::string variable =
      "GPUS=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $GPUS pretrain_gpt.py " + flags;
  RunImport options;
  options.variables = {{"GPUS", "4"}};
  EXPECT_EQ(imported("t.sh", variable, options).job.supernode.devices, 4);
}

TEST(Megatron, OtherTrainingsOfAScriptAreTold) {
  std::string flags = kArguments;
  std::ranges::replace(flags, '\n', ' ');
  const ImportedRun run =
      imported("t.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py " + flags +
                           "--overlap-grad-reduce\ntorchrun --nproc_per_node 4 pretrain_gpt.py " + flags +
                           "\npython tool.py --input x\n");
  EXPECT_EQ(run.job.supernode.devices, 8);
  ASSERT_THAT(run.notes, SizeIs(1));
  EXPECT_EQ(run.notes[0].field, "t.sh:2:1");
  EXPECT_THAT(run.notes[0].text, HasSubstr("the job is of that at t.sh:1:1"));
}

TEST(Megatron, ACommandWithinAStringIsRead) {
  std::string on_one_line = kArguments;
  std::ranges::replace(on_one_line, '\n', ' ');
  const ImportedRun run = imported("t.sh", "A='" + on_one_line +
                                               "'\nsrun -l bash -c \"torchrun --nproc_per_node 8 "
                                               "pretrain_gpt.py $A --use-distributed-optimizer\"\n");
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "zero1"));
}

// The values of variables that nobody has set are flags of their own, or nothing.
TEST(Megatron, AnUnsetVariableBehindAFlagIsNotItsValue) {
  std::string on_one_line = kArguments;
  std::ranges::replace(on_one_line, '\n', ' ');
  const ImportedRun run =
      imported("t.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py " + on_one_line +
                           " --use-distributed-optimizer $SP --init-method-std 0.01 $MORE\n");
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "zero1"));
  EXPECT_EQ(run.job.training.init_std, 0.01);
  EXPECT_THAT(finding_of(run, "use-distributed-optimizer").meaning, HasSubstr("$SP adds is not known"));
}

TEST(Megatron, ContextIsARingOrHeads) {
  EXPECT_THAT(mesh(with("--context-parallel-size 4")), ElementsAre("dp 2", "ring 4"));
  EXPECT_THAT(mesh(with("--context-parallel-size 4 --cp-comm-type a2a")), ElementsAre("dp 2", "cp 4"));
  EXPECT_THAT(
      mesh(
          with("--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2")),
      ElementsAre("dp 2", "ring 2", "cp 2"));
}

constexpr const char* kExperts =
    "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --tensor-model-parallel-size 2 "
    "--sequence-parallel ";

TEST(Megatron, ExpertsLieWhereItsGroupsAre) {
  const ImportedRun width = with(std::string(kExperts) + "--expert-model-parallel-size 2");
  EXPECT_THAT(mesh(width), ElementsAre("dp 2", "ep 2", "tp 2"));
  EXPECT_THAT(width.job.parallel.presets, ElementsAre("dp", "ep", "tp", "sp", "etp"));
  const ImportedRun spread =
      with(std::string(kExperts) + "--expert-model-parallel-size 4 --expert-tensor-parallel-size 1");
  EXPECT_THAT(mesh(spread), ElementsAre("dp 2", "ep 2", "tp 2"));
  EXPECT_THAT(spread.job.parallel.presets, ElementsAre("dp", "ep", "tp", "sp", "ep_tp"));
  EXPECT_THAT(refusal("f.txt", kArguments + kExperts + "--expert-model-parallel-size 3", {.devices = 8}),
              HasSubstr("experts over 3 devices"));
  // Two replicas cannot have experts on four devices: parts of the context do.
  const ImportedRun context =
      with(std::string(kExperts) + "--context-parallel-size 2 --expert-model-parallel-size 4");
  EXPECT_THAT(context.job.parallel.rules, SizeIs(3));
  EXPECT_THAT(context.job.parallel.rules[0].dims[0].axes, ElementsAre("ep", "ring"));
}

TEST(Megatron, RoutersAreTheirFlags) {
  const ExpertsSpec plain = with(kExperts).job.model.experts;
  EXPECT_TRUE(plain.normalize);
  EXPECT_EQ(plain.aux_loss, 0);
  const ExpertsSpec e =
      with(std::string(kExperts) +
           "--moe-layer-freq '([0]*2+[1]*6)' --moe-shared-expert-intermediate-size 512 "
           "--moe-router-score-function sigmoid "
           "--moe-router-num-groups 4 --moe-router-group-topk 2 --moe-router-topk-scaling-factor 2.5 "
           "--moe-router-enable-expert-bias --moe-aux-loss-coeff 1e-4")
          .job.model.experts;
  EXPECT_EQ(e.dense_layers, 2);
  EXPECT_EQ(e.shared, 2);
  EXPECT_EQ(e.scoring, "sigmoid");
  EXPECT_EQ(e.groups, 4);
  EXPECT_EQ(e.group_choices, 2);
  EXPECT_EQ(e.scale, 2.5);
  EXPECT_EQ(e.bias_rate, 1e-3);
  EXPECT_EQ(e.aux_loss, 1e-4);
  EXPECT_FALSE(with(std::string(kExperts) + "--moe-router-pre-softmax").job.model.experts.normalize);
  const ExpertsSpec every_other = with(std::string(kExperts) + "--moe-layer-freq 2").job.model.experts;
  for (std::int32_t layer = 0; layer < 4; ++layer)
    EXPECT_EQ(every_other.in_layer(layer), layer % 2 == 0) << layer;
  EXPECT_EQ(finding_of(with(std::string(kExperts) + "--moe-layer-freq [1,0]*7"), "moe-layer-freq").verdict,
            Verdict::kGap);
}

TEST(Megatron, FamiliesFollowFromFlags) {
  EXPECT_EQ(with("").job.model.name, "llama");
  EXPECT_EQ(with("--qk-layernorm --kv-channels 128").job.model.name, "qwen3");
  EXPECT_EQ(with("--qk-layernorm --kv-channels 128").job.model.head_dim, 128);
  EXPECT_EQ(with("--num-experts 4 --moe-aux-loss-coeff 1e-2").job.model.name, "mixtral");
  EXPECT_EQ(with("--add-qkv-bias").job.model.name, "qwen2");
  EXPECT_EQ(with("--qk-layernorm --num-experts 4").job.model.name, "qwen3_moe");
  const Job latent = with(
                         "--multi-latent-attention --q-lora-rank 96 --kv-lora-rank 64 --qk-head-dim 32 "
                         "--qk-pos-emb-head-dim 16 --v-head-dim 32 --mtp-num-layers 1")
                         .job;
  EXPECT_EQ(latent.model.name, "deepseek_v3");
  EXPECT_EQ(latent.model.latent, (LatentSpec{96, 64, 32, 16, 32}));
  EXPECT_EQ(latent.model.mtp.layers, 1);
  const Job gpt =
      imported("f.txt",
               "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 "
               "--max-position-embeddings 512 --vocab-size 1000 --micro-batch-size 1 --global-batch-size 8",
               {.devices = 8})
          .job;
  EXPECT_EQ(gpt.model.name, "gpt2");
  EXPECT_EQ(gpt.model.positions, 512);
  EXPECT_EQ(gpt.model.ffn, 1024);
  EXPECT_EQ(gpt.model.vocab, 1024);
  EXPECT_EQ(gpt.training.precision, kFloat32);
}

TEST(Megatron, LatentAttentionMayHaveYarn) {
  const Job job = with(
                      "--multi-latent-attention --kv-lora-rank 64 --qk-head-dim 32 --qk-pos-emb-head-dim 16 "
                      "--v-head-dim 32 --num-experts 4 --moe-router-pre-softmax --rotary-scaling-factor 40 "
                      "--mscale 0.5 --mscale-all-dim 0.5 --original-max-position-embeddings 2048")
                      .job;
  EXPECT_EQ(job.model.name, "deepseek_v2");
  EXPECT_EQ(job.model.rope_scaling.type, kYarnRope);
  EXPECT_EQ(job.model.rope_scaling.factor, 40);
  EXPECT_EQ(job.model.rope_scaling.mscale_all_dim, 0.5);
  EXPECT_EQ(job.model.rope_scaling.original_sequence, 2048);
}

TEST(Megatron, WhatAModelLacksIsTold) {
  const ImportedRun run =
      imported("f.txt",
               "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --vocab-size 1000 "
               "--position-embedding-type rope --squared-relu",
               {.devices = 1});
  EXPECT_EQ(run.job.model.name, "llama");
  EXPECT_THAT(run.left_out, SizeIs(5));  // LayerNorm, no SwiGLU, biases, dropout of two kinds
  EXPECT_EQ(finding_of(run, "squared-relu").verdict, Verdict::kGap);
}

TEST(Megatron, GroupsOfQueriesNeedTheirFlag) {
  const ImportedRun run = with("--num-query-groups 2");
  EXPECT_EQ(run.job.model.kv_heads, 8);
  EXPECT_EQ(finding_of(run, "num-query-groups").verdict, Verdict::kNoMatter);
  EXPECT_THAT(finding_of(run, "num-query-groups").meaning, HasSubstr("without group-query-attention"));
  EXPECT_EQ(with("--num-query-groups 2 --group-query-attention").job.model.kv_heads, 2);
}

TEST(Megatron, SelectiveRecomputationIsOfItsModules) {
  const auto policy = [](const std::string& flags) {
    const Job job = with(flags).job;
    return job.training.recompute.empty() ? "none" : job.training.recompute[0].policy;
  };
  // The core of attention is never kept here.
  for (const char* flags : {"--recompute-activations", "--recompute-granularity selective",
                            "--recompute-granularity selective --recompute-modules core_attn"}) {
    EXPECT_EQ(policy(flags), "none") << flags;
    const ImportedRun run = with(flags);
    EXPECT_EQ(run.findings.back().verdict, Verdict::kNoMatter) << flags;
    EXPECT_THAT(run.findings.back().meaning, HasSubstr("scores of attention are never kept")) << flags;
  }
  const std::string modules = "--recompute-granularity selective --recompute-modules ";
  EXPECT_EQ(policy(modules + "layernorm moe_act"), "selective");
  EXPECT_EQ(policy(modules + "core_attn layernorm"), "selective");
  EXPECT_THAT(import_report(with(modules + "layernorm"), ""), HasSubstr("the run names norms alone"));
  const ImportedRun up = with(modules + "layernorm mla_up_proj mlp");
  EXPECT_EQ(up.job.training.recompute.at(0).policy, "selective");
  EXPECT_EQ(finding_of(up, "recompute-modules").verdict, Verdict::kGap);
  EXPECT_THAT(finding_of(up, "recompute-modules").meaning, HasSubstr("mla_up_proj, mlp: parts of a layer"));
  EXPECT_EQ(policy(modules + "moe"), "none");
  EXPECT_EQ(policy("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"),
            "full");
}

TEST(Megatron, AWindowIsEarlierPositionsAndTheOwn) {
  const ModelSpec all = with("--window-size 127,0").job.model;
  EXPECT_EQ(all.name, "mistral");
  EXPECT_EQ(all.window, 128);
  EXPECT_EQ(all.window_of(7), 128);
  const ModelSpec some = with("--window-size '(127,0)' --window-attn-skip-freq 4 --qk-layernorm").job.model;
  EXPECT_EQ(some.name, "qwen3");
  for (std::int32_t layer = 0; layer < 8; ++layer)
    EXPECT_EQ(some.window_of(layer), layer % 4 == 3 ? 0 : 128) << layer;
  const ModelSpec listed = with("--window-size 127,0 --window-attn-skip-freq '([1]*3+[0]*5)'").job.model;
  EXPECT_EQ(listed.window_of(2), 128);
  EXPECT_EQ(listed.window_of(3), 0);
  // A window that no sequence fills, and one that sees no end of earlier positions, are none.
  EXPECT_EQ(with("--window-size 1000,0").job.model.window, 0);
  EXPECT_EQ(finding_of(with("--window-size 255,0"), "window-size").verdict, Verdict::kNoMatter);
  EXPECT_EQ(finding_of(with("--window-attn-skip-freq 2"), "window-attn-skip-freq").verdict,
            Verdict::kNoMatter);
  EXPECT_EQ(with("--window-size -1,0").job.model.window, 0);
  EXPECT_EQ(finding_of(with("--window-size 4,4"), "window-size").verdict, Verdict::kGap);
  const ImportedRun latent = with(
      "--window-size 127,0 --multi-latent-attention --kv-lora-rank 64 --qk-head-dim 32 --qk-pos-emb-head-dim "
      "16 "
      "--v-head-dim 32");
  EXPECT_EQ(finding_of(latent, "window-size").verdict, Verdict::kGap);
  EXPECT_EQ(with("--use-fused-rmsnorm --sliding-window 127").job.model.window, 128);
}

TEST(Megatron, WhatChangesMemoryOrWeightsIsAGap) {
  for (const char* flags :
       {"--attention-backend unfused", "--attention-backend local", "--fp32-residual-connection",
        "--embedding-init-method-std 1.0", "--use-fused-rmsnorm --reuse-fp32-param"})
    EXPECT_EQ(with(flags).findings.back().verdict, Verdict::kGap) << flags;
  EXPECT_EQ(with("--attention-backend flash").findings.back().verdict, Verdict::kNoMatter);
  EXPECT_THAT(with("--use-fused-rmsnorm --reuse-fp32-param").findings.back().meaning,
              HasSubstr("2 bytes of each weight"));
}

TEST(Megatron, DropoutIsToldOnce) {
  const ImportedRun run = with("--hidden-dropout 0.1");
  EXPECT_THAT(finding_of(run, "hidden-dropout").meaning, HasSubstr("hyperrun has 0 alone"));
  ASSERT_THAT(run.left_out, SizeIs(1));
  EXPECT_THAT(run.left_out[0].text, HasSubstr("attention-dropout of 0.1"));
}

TEST(Megatron, StagesMayBeUneven) {
  const auto layers = [](const ImportedRun& run) {
    std::vector<std::int32_t> list;
    for (const PipelineSpec::Stage& s : run.job.parallel.pipeline.stages) list.push_back(s.layers);
    return list;
  };
  EXPECT_THAT(layers(with("--pipeline-model-parallel-size 4")), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(layers(with("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
                          "--decoder-last-pipeline-num-layers 1")),
              ElementsAre(1, 3, 3, 1));
  EXPECT_THAT(layers(with("--pipeline-model-parallel-size 2 --account-for-embedding-in-pipeline-split "
                          "--account-for-loss-in-pipeline-split")),
              ElementsAre(4, 4));
  const ImportedRun stages =
      with("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(t|)*2,t*3L'");
  EXPECT_THAT(layers(stages), ElementsAre(3, 1, 1, 3));
  EXPECT_EQ(stages.job.parallel.pipeline.schedule, "interleaved");
  EXPECT_THAT(refusal("f.txt", kArguments + "--pipeline-model-parallel-size 3", {.devices = 24}),
              HasSubstr("8 layers do not divide over 3 stages"));
  EXPECT_THAT(
      refusal("f.txt",
              kArguments + "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|tL'",
              {.devices = 8}),
      HasSubstr("2 stages with 2 layers"));
}

TEST(Megatron, ShardsAreZero) {
  EXPECT_THAT(
      with("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params").job.parallel.presets,
      ElementsAre("dp", "zero3"));
  EXPECT_THAT(with("--use-torch-fsdp2").job.parallel.presets, ElementsAre("dp", "zero3"));
  EXPECT_THAT(mesh(with("--use-distributed-optimizer --num-distributed-optimizer-instances 2")),
              ElementsAre("replicas 2", "dp 4"));
  EXPECT_EQ(
      finding_of(with("--data-parallel-sharding-strategy optim"), "data-parallel-sharding-strategy").verdict,
      Verdict::kGap);
}

TEST(Mindspeed, ItsFlagsAreItsOwn) {
  const ImportedRun run = imported("t.sh", "NPUS_PER_NODE=16\nA='" + kArguments + R"('
python -m torch.distributed.launch --nproc_per_node $NPUS_PER_NODE pretrain_gpt.py $A --context-parallel-size 4 \
  --context-parallel-algo hybrid_cp_algo --ulysses-degree-in-cp 2 --use-fused-rmsnorm --swap-optimizer \
  --num-experts 8 --moe-intermediate-size 128 --first-k-dense-replace 1 --n-shared-experts 2 --routed-scaling-factor 2 \
  --tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 2 --moe-tp-extend-ep \
  --recompute-activation-function)");
  EXPECT_EQ(run.framework->kind, FrameworkKind::kMindspeed);
  EXPECT_EQ(run.job.supernode.profile, "matrix384");
  EXPECT_EQ(run.job.supernode.software, "mindspeed");
  EXPECT_THAT(mesh(run), ElementsAre("ep 2", "ring 2", "cp 2", "tp 2"));
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("ep", "ring", "cp", "tp", "sp", "ep_tp"));
  EXPECT_EQ(run.job.model.experts.dense_layers, 1);
  EXPECT_EQ(run.job.model.experts.shared, 2);
  EXPECT_THAT(run.job.memory.tensors, ElementsAre("optimizer"));
  EXPECT_EQ(run.job.training.recompute.at(0).policy, "selective");
}

TEST(Mindspeed, LayersThatComputeNothingAreTakenOff) {
  const ImportedRun run = with("--use-fused-rmsnorm --pipeline-model-parallel-size 4 --noop-layers 0,7");
  EXPECT_EQ(run.job.model.layers, 6);
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(0).layers, 1);
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(1).layers, 2);
  EXPECT_EQ(run.job.parallel.pipeline.stages.at(3).layers, 1);
  EXPECT_EQ(with("--use-fused-rmsnorm --pipeline-model-parallel-size 2 --num-layer-list 3,5")
                .job.parallel.pipeline.stages.at(1)
                .layers,
            5);
}

TEST(Megatron, AnOwnVocabularyIsNotPadded) {
  RunImport options;
  options.devices = 8;
  std::string arguments = kArguments;
  arguments.replace(arguments.find("--padded-vocab-size 1024"), 24, "");
  EXPECT_EQ(imported("f.txt", arguments + "--vocab-size 1000", options).job.model.vocab, 1024);
  EXPECT_EQ(imported("f.txt", arguments + "--vocab-size 1000 --make-vocab-size-divisible-by 1", options)
                .job.model.vocab,
            1000);
  EXPECT_EQ(imported("f.txt", arguments + "--tokenizer-type Llama2Tokenizer", options).job.model.vocab,
            32000);
  EXPECT_EQ(imported("f.txt", arguments + "--vocab-file v.json --merge-file m.txt", options).job.model.vocab,
            50304);  // 50257 padded
  options.vocab = 777;
  EXPECT_EQ(imported("f.txt", arguments, options).job.model.vocab, 777);
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
