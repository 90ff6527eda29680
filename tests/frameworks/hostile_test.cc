// Files that are damaged, huge, of another kind or made to harm end with a place, at once, and without a
// crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Hostile, ABinaryFileIsTold) {
  EXPECT_THAT(refusal("ls", std::string("\x7f"
                                        "ELF\0\1\2",
                                        7)),
              HasSubstr("ls: error[syntax]: a binary file: byte 1 is a control character, of the code 127"));
}

TEST(Hostile, AnEmptyFileIsTold) {
  EXPECT_THAT(refusal("x.sh", ""), HasSubstr("x.sh: error"));
  EXPECT_THAT(refusal("x.toml", ""), HasSubstr("the file has no setting"));
  EXPECT_THAT(refusal("x", "hello world\n"), HasSubstr("no framework has such a configuration"));
  EXPECT_THAT(refusal("x.sh", "#!/bin/sh\necho hello\n"),
              HasSubstr("no command of the script starts a training"));
}

TEST(Hostile, TenThousandFlagsAreTold) {
  std::string text = kArguments;
  for (int i = 0; i < 10'000; ++i) text += " --flag-" + std::to_string(i) + " " + std::to_string(i) + "\n";
  const ImportedRun run = imported("f.txt", text, {.devices = 8});
  EXPECT_GT(run.findings.size(), 10'000U);
  EXPECT_THAT(import_report(run, "f.txt"), HasSubstr("--flag-9999 9999"));
}

TEST(Hostile, TenThousandAppendedFlagsAreRead) {
  std::string text = "A=\"" + kArguments + "\"\n";
  for (int i = 0; i < 10'000; ++i) text += "A=\"$A --flag-" + std::to_string(i) + "\"\n";
  const ImportedRun run = imported("f.sh", text + "torchrun --nproc_per_node 8 t.py $A\n");
  EXPECT_GT(run.findings.size(), 10'000U);
}

TEST(Hostile, DeepAndWideFilesAreTold) {
  EXPECT_THAT(refusal("x.yaml", "accelerator: " + std::string(3000, '[') + std::string(3000, ']')),
              HasSubstr("error"));
  EXPECT_THAT(refusal("x.json", "{\"zero_optimization\": " + std::string(3000, '{') + "}"),
              HasSubstr("error[syntax]"));
  EXPECT_THAT(refusal("x.toml", "[training\nsteps = 1"), HasSubstr("x.toml:1:10: error[syntax]"));
  EXPECT_THAT(refusal("x.yaml", "accelerator:\n\ttp_size: 1\n"), HasSubstr("x.yaml:2:9: error[syntax]"));
  std::string laughs = "accelerator: &a0 [1]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string n = std::to_string(i), before = std::to_string(i - 1);
    laughs += "b" + n + ": &a" + n + " {x: *a" + before + ", y: *a" + before + "}\n";
  }
  EXPECT_THAT(refusal("x.yaml", laughs), HasSubstr("error[syntax]"));
}

TEST(Hostile, WrongValuesAreTold) {
  const RunImport options{.devices = 8};
  for (const auto& [flags, part] : std::vector<std::pair<std::string, std::string>>{
           {"--num-query-groups x", "a whole number belongs there"},
           {"--num-query-groups 1e30", "a whole number belongs there"},
           {"--num-query-groups", "a whole number belongs there"},
           {"--tensor-model-parallel-size 0", "a degree of 0"},
           {"--tensor-model-parallel-size -4", "a degree of -4"},
           {"--adam-beta1 nan", "a number belongs there"},
           {"--num-experts 1000000 --moe-router-topk 2", "no job can be of this"},
           {"--adam-beta1 2", "no job can be of this"},
           {"--context-parallel-size 2 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 3 2",
            "do not divide"},
           {"--pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 3", "do not divide"},
           {"--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '(((('", "is not of E, t, m"},
           {"--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 't*99999999|'",
            "is not of E, t, m"}})
    EXPECT_THAT(refusal("f.txt", kArguments + flags, options), HasSubstr(part)) << flags;
  EXPECT_THAT(
      refusal("t.sh",
              "torchrun --nproc_per_node 99999999 --nnodes 99999999 t.py " +
                  std::string("--num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 8")),
      HasSubstr("devices"));
}

// Every refusal has a place or an option to give, and nothing is an error of hyperrun's own.
TEST(Hostile, DamagedFilesNeverCrash) {
  std::mt19937_64 random(7);
  const std::vector<std::pair<std::string, std::string>> files{
      {"t.sh", "A=(\n" + kArguments +
                   ")\nif [ $X = 1 ]; then B=\"--lr $((1+2))\"; fi\nfor i in 1 2; do C=${C:-x}$i; "
                   "done\ntorchrun --nproc_per_node 8 t.py ${A[@]} $B\n"},
      {"t.toml",
       "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = "
       "1\n[parallelism]\ntensor_parallel_degree = 2\n"},
      {"t.json",
       "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}}"},
      {"t.yaml",
       "accelerator: {tp_size: 2, pp_size: 2}\nmodel: {pretrained_model_name_or_path: "
       "Qwen/Qwen3-8B}\ntraining: {global_batch_size: 8}\n"},
      {"t.py",
       "def a_config():\n    cfg.model.tensor_model_parallel_size = 2\n    cfg.x = f(a=[1, 2], b={\"c\": "
       "3})\n"}};
  for (int round = 0; round < 400; ++round)
    for (const auto& [name, text] : files) {
      std::string damaged = text;
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        const std::size_t at = random() % damaged.size();
        if (random() % 2 == 0)
          damaged.erase(at, random() % 8);
        else
          damaged[at] = "\"'$(){}[]\\|&;<>=#-0\n"[random() % 20];
        if (damaged.empty()) break;
      }
      const std::string message = refusal(name, damaged, {.devices = 8});
      EXPECT_THAT(message, Not(HasSubstr("internal"))) << damaged;
    }
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
