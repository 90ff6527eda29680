// A model of llama2.c becomes a checkpoint that a job continues from; a file that is no such model leaves
// nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"
#include "tests/support/llama2c_model.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kTokenizer = HYPERRUN_SOURCE_DIR "/tests/model/text/fixture/llama2/tokenizer.bin";

void put(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string model_file() {
  Llama2cModel model;
  model.vocab_size = 420;  // of the tokenizer
  model.seq_len = 32;
  model.fill(2);
  return model.file(0);
}

// The job with the block that the command prints for its model, and with a generation.
std::string job_with(const std::string& printed) {
  const std::size_t begin = printed.find("model {"), end = printed.find('}', begin);
  return "supernode { devices: 2 hbm: \"16 MiB\" }\n" + printed.substr(begin, end + 1 - begin) + R"(
parallel { mesh { name: "tp" size: 2 } presets: "tp" }
data { corpus: "corpus.txt" }
training { steps: 2 batch: 2 lr: 1e-4 }
run { directory: "out" generate { prompt: "The harbour" tokens: 3 } }
)";
}

TEST(Import, AJobGoesOnFromIt) {
  const Workspace workspace;
  put(workspace / "model.bin", model_file());
  const Finished import =
      workspace.run(hyperrun({"import", "model.bin", "--tokenizer", kTokenizer, "--out", "a/model"}));
  ASSERT_THAT(import, Succeeded()) << import;
  EXPECT_THAT(files_below(workspace / "a"),
              ElementsAre("model/config.json", "model/model.safetensors", "model/tokenizer.json"));

  const std::string job = workspace.job(job_with(import.out));
  const Finished run = workspace.run(hyperrun({job, "--resume", "a/model"}));
  ASSERT_THAT(run, Succeeded()) << run;
  EXPECT_EQ(losses(workspace / "out").size(), 2U);
  EXPECT_THAT(content(workspace / "out/generated.txt"), ::testing::StartsWith("The harbour"));
  // The checkpoint that it saves has the same tokenizer.
  EXPECT_EQ(content(workspace / "out/checkpoints/step-000002/tokenizer.json"),
            content(workspace / "a/model/tokenizer.json"));
  EXPECT_EQ(content(workspace / "out/checkpoints/step-000002/config.json"),
            content(workspace / "a/model/config.json"));
}

// A tokenizer with an added token, but without a row of the embedding for it.
TEST(Import, ATokenizerWithMoreTokensThanTheModelGeneratesNothing) {
  const Workspace workspace;
  put(workspace / "model.bin", model_file());
  ASSERT_THAT(workspace.run(hyperrun({"import", "model.bin", "--tokenizer", kTokenizer, "--out", "model"})),
              Succeeded());
  const std::vector<std::string> generate{"generate", "model", "--prompt", "The", "--tokens", "2"};
  EXPECT_THAT(workspace.run(hyperrun(generate)), Succeeded());
  const auto path = workspace / "model/tokenizer.json";
  auto tokenizer = nlohmann::json::parse(content(path));
  tokenizer["added_tokens"].push_back({{"id", 420},
                                       {"content", "<|more|>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}});
  put(path, tokenizer.dump());
  const Finished refused = workspace.run(hyperrun(generate));
  EXPECT_EQ(refused.status, 3) << refused;
  EXPECT_THAT(refused.err, HasSubstr("the tokenizer has 421 tokens, the model 420"));
}

TEST(Import, WithoutATokenizerItSaysSo) {
  const Workspace workspace;
  put(workspace / "model.bin", model_file());
  const Finished f = workspace.run(hyperrun({"import", "model.bin", "--out", "model"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(files_below(workspace / "model"), ElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(f.out, HasSubstr("data.tokenizer"));
}

struct Refused {
  std::vector<std::string> arguments;
  int status;
  std::vector<std::string> said;
};

constexpr const char* kScript = R"(#!/bin/bash
GPUS=4
MODEL="--num-layers 4 --hidden-size 256 --num-attention-heads 4 --ffn-hidden-size 512 --seq-length 128 \
  --max-position-embeddings 128 --padded-vocab-size 512 --swiglu --normalization RMSNorm --disable-bias-linear \
  --position-embedding-type rope --hidden-dropout 0 --attention-dropout 0"
torchrun --nproc_per_node $GPUS pretrain_gpt.py $MODEL --micro-batch-size 1 --global-batch-size 16 --bf16 \
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --log-interval 5 --own-flag 7
)";

// A script becomes a job that check and plan take; the plan's flags become a job with that plan.
TEST(ImportRun, AScriptGoesThereAndBack) {
  const Workspace workspace;
  put(workspace / "train.sh", kScript);
  const Finished import = workspace.run(hyperrun({"import", "train.sh", "--out", "job.textproto"}));
  ASSERT_THAT(import, Succeeded()) << import;
  EXPECT_THAT(import.out, HasSubstr("train.sh: Megatron-LM, 4 devices"));
  EXPECT_THAT(import.out, HasSubstr("--own-flag 7"));
  EXPECT_THAT(content(workspace / "job.textproto"), HasSubstr("# --num-layers 4, train.sh:3:8"));
  EXPECT_THAT(workspace.run(hyperrun({"check", "job.textproto"})), Succeeded());

  const Finished plan = workspace.run(
      hyperrun({"plan", "job.textproto", "--leaders", "2", "--ranges", "0", "--flags", "megatron"}),
      Seconds(120));
  ASSERT_THAT(plan, Succeeded()) << plan;
  const std::size_t begin = plan.out.rfind("\n\n--");
  ASSERT_NE(begin, std::string::npos) << plan;
  put(workspace / "flags.txt", plan.out.substr(begin));
  const Finished again =
      workspace.run(hyperrun({"import", "flags.txt", "--devices", "4", "--out", "best.textproto"}));
  ASSERT_THAT(again, Succeeded()) << again;
  EXPECT_THAT(again.out, HasSubstr(", 0 cannot be expressed"));
  EXPECT_THAT(workspace.run(hyperrun({"check", "best.textproto"})), Succeeded());
}

TEST(ImportRun, ItWritesOverNothingButItsOwnJobs) {
  const Workspace workspace;
  put(workspace / "train.sh", kScript);
  put(workspace / "mine.textproto", "# mine\n");
  const std::vector<std::string> import{"import", "train.sh", "--out", "job.textproto"};
  EXPECT_THAT(workspace.run(hyperrun(import)), Succeeded());
  EXPECT_THAT(workspace.run(hyperrun(import)), Succeeded());
  for (const char* out : {"mine.textproto", "train.sh"}) {
    const Finished refused = workspace.run(hyperrun({"import", "train.sh", "--out", out}));
    EXPECT_EQ(refused.status, 2) << refused;
    EXPECT_THAT(refused.err, HasSubstr(std::string("--out ") + out + ": error[usage]"));
  }
  EXPECT_EQ(content(workspace / "mine.textproto"), "# mine\n");
  EXPECT_EQ(content(workspace / "train.sh"), kScript);
}

TEST(ImportRun, OptionsAreChecked) {
  const Workspace workspace;
  put(workspace / "train.sh", kScript);
  const Refused kRefused[] = {
      {{"import", "train.sh", "--out", "o", "--from", "megaton"},
       2,
       {"--from: error[usage]", "legal: megatron, mindspeed"}},
      {{"import", "train.sh", "--out", "o", "--set", "GPUS"}, 2, {"--set: error[usage]", "NAME=VALUE"}},
      {{"import", "train.sh", "--out", "o", "--devices", "0"}, 2, {"--devices"}},
      {{"import", "train.sh", "--out", "o", "--model", "gone.json"}, 6, {"gone.json"}},
      {{"import", "train.sh", "--out", "o", "--profile", "nobody"}, 6, {"nobody"}},
      {{"plan", "job.textproto", "--flags", "megaton"},
       2,
       {"--flags: error[usage]", "legal: megatron, mindspeed, torchtitan, deepspeed, hyper-parallel"}},
  };
  for (const Refused& refused : kRefused) {
    const Finished f = workspace.run(hyperrun(refused.arguments));
    EXPECT_EQ(f.status, refused.status) << f;
    for (const std::string& part : refused.said) EXPECT_THAT(f.err, HasSubstr(part)) << f;
  }
}

TEST(Import, ItsHelpHasAnExample) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun({"import", "--help"}));
  EXPECT_EQ(f.status, 0);
  EXPECT_THAT(f.out, HasSubstr("hyperrun import stories15M.bin --tokenizer tokenizer.bin --out stories15M"));
}

TEST(Import, WhatIsRefusedLeavesNothing) {
  const Workspace workspace;
  const std::string model = model_file(), tokenizer = content(kTokenizer);
  put(workspace / "model.bin", model);
  put(workspace / "short.bin", model.substr(0, model.size() / 2));
  put(workspace / "short_tokenizer.bin", tokenizer.substr(0, tokenizer.size() / 2));
  fs::create_directory(workspace / "full");
  put(workspace / "full/mine.txt", "mine");
  const Refused kRefused[] = {
      {{"import", "model.bin"}, 2, {"error[usage]: --out"}},
      {{"import", "absent.bin", "--out", "out"}, 6, {"absent.bin: error[missing-file]"}},
      {{"import", "short.bin", "--out", "out"},
       6,
       {"short.bin: error[bad-checkpoint]: truncated", "legal: "}},
      {{"import", "corpus.txt", "--out", "out"}, 3, {"corpus.txt: error[syntax]: no framework has"}},
      {{"import", "model.bin", "--tokenizer", "short_tokenizer.bin", "--out", "out"},
       6,
       {"short_tokenizer.bin: error[bad-tokenizer]: it ends within token"}},
      {{"import", "model.bin", "--tokenizer", "model.bin", "--out", "out"}, 6, {"error[bad-tokenizer]"}},
      {{"import", "model.bin", "--out", "full"}, 7, {"full: error[unwritable]: the folder is not empty"}},
      {{"import", "model.bin", "--out", "corpus.txt"}, 7, {"corpus.txt: error[unwritable]"}},
      {{"import", "model.bin", "--out", "corpus.txt/out"}, 7, {"error[unwritable]"}},
  };
  const std::vector<std::string> before = files_below(workspace / ".");
  for (const Refused& refused : kRefused) {
    const Finished f = workspace.run(hyperrun(refused.arguments));
    EXPECT_EQ(f.status, refused.status) << f;
    for (const std::string& part : refused.said) EXPECT_THAT(f.err, HasSubstr(part)) << f;
    EXPECT_THAT(f.err, HasSubstr("fix: ")) << f;
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(files_below(workspace / "."), before) << f;
    EXPECT_FALSE(fs::exists(workspace / "out")) << f;
  }
}

}  // namespace
}  // namespace hyperrun::testing
