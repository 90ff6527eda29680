// Python recipes are read as far as they are data.
#include "runtime/frameworks/python_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/frameworks/support.h"

namespace hyperrun::frameworks::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe = R"py(
"""Recipes.  cfg.model.tensor_model_parallel_size = 9 is no statement."""
import torch

def _base():
    cfg = _pretrain_common()
    cfg.train.train_iters = 1_000
    cfg.model.tensor_model_parallel_size = 1
    return cfg

def tiny_8gpu_config() -> ConfigContainer:
    cfg = _base()
    # cfg.model.context_parallel_size = 4
    cfg.model = AutoBridge.from_hf_pretrained("meta-llama/Llama-3.1-8B").to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 2  # two
    cfg.model.sequence_parallel = True
    cfg.model.seq_length = 4096
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.recompute_granularity = None
    cfg.optimizer.lr = base_lr * 2
    cfg.mixed_precision = MixedPrecisionConfig(
        bf16=True,
        grad_reduce_in_fp32=False,
    )
    cfg.train.global_batch_size = 32
    cfg.train.micro_batch_size = 1
    cfg.ddp.use_distributed_optimizer = True
    return cfg
)py";

TEST(PythonRecipe, AssignmentsOfValuesAreRead) {
  const ImportedRun run = imported("recipe.py", kRecipe);
  EXPECT_EQ(run.framework->kind, FrameworkKind::kMegatronBridge);
  EXPECT_EQ(run.job.supernode.devices, 8);  // of its name
  EXPECT_EQ(run.job.model.layers, 32);
  EXPECT_EQ(run.job.training.steps, 1000);  // of the other function
  EXPECT_EQ(run.job.parallel.mesh.back().size, 2);
  EXPECT_THAT(run.job.parallel.presets, ElementsAre("dp", "tp", "sp", "zero1"));
  EXPECT_EQ(run.job.training.precision, kBfloat16);
  EXPECT_EQ(finding_of(run, "tensor-model-parallel-size").setting.place, "recipe.py:15");
  std::string notes;
  for (const Assumption& a : run.notes) notes += a.field + " " + a.text + "\n";
  EXPECT_THAT(notes,
              HasSubstr("recipe.py:20 not read, as it is no plain value: cfg.optimizer.lr = base_lr * 2"));
  EXPECT_THAT(notes, HasSubstr("_pretrain_common"));
}

TEST(PythonRecipe, DictionariesAndKeywordsAreRead) {
  const ImportedRun run = imported("r.py", R"(
def small(**user_kwargs):
    recommended_kwargs: Kwargs = {
        "hf_path": "Qwen/Qwen3-8B",
        "tensor_model_parallel_size": 4,
        "global_batch_size": 16,
        "micro_batch_size": 1,
        "seq_length": 2048,
    }
    return _common(**combined)
)",
                                   {.devices = 8});
  EXPECT_EQ(run.job.model.name, "qwen3");
  EXPECT_EQ(run.job.training.micro_batches, 8);
}

TEST(PythonRecipe, OneOfSeveralIsNamed) {
  const std::string two =
      "def a_config():\n    cfg.model.tensor_model_parallel_size = 1\ndef b_config():\n    "
      "cfg.model.tensor_model_parallel_size = 2\n";
  EXPECT_THAT(refusal("r.py", two), HasSubstr("legal: a_config, b_config"));
  RunImport options{.devices = 4};
  options.recipe = "c_config";
  EXPECT_THAT(refusal("r.py", two, options), HasSubstr("no recipe \"c_config\""));
  EXPECT_THAT(read_python_recipe("r.py", two, "b_config").settings.at(0).value, "2");
}

}  // namespace
}  // namespace hyperrun::frameworks::testing
