// GPT-2, trained and asked for text: in bfloat16, from a checkpoint of another layout, with recomputation.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

Job job_of(const std::string& layout) {
  Job job = small_job(layout);
  become_gpt2(job);
  job.training.steps = 12;
  return job;
}

TEST(Gpt2, WritesTheSameUnderEveryLayout) {
  const auto writer = [](const std::string& layout) {
    Job job = job_of(layout);
    job.run.generate.tokens = 6;
    return run_in_process(job);
  };
  const RunResult one = writer("dp:1");
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.1) << "it does not learn";
  EXPECT_EQ(one.tokens.size(), 6U);
  for (const char* layout : {"dp:2 tp:2 sp", "cp:4", "ring:4", "tpx:2 tpy:2", "pp:2 dp:2 zero3"}) {
    const RunResult many = writer(layout);
    EXPECT_EQ(many.tokens, one.tokens) << layout;
    EXPECT_TRUE(many.strays.empty()) << layout;
  }
}

TEST(Gpt2, LearnsInBfloat16AsInFloat32) {
  const RunResult wide = run_in_process(job_of("dp:1"));
  for (const char* layout :
       {"dp:1 bf16", "dp:2 tp:2 sp zero1 bf16", "pp:2 dp:2 zero3 bf16", "ring:2 cp:2 bf16"}) {
    const RunResult half = run_in_process(job_of(layout));
    for (std::size_t s = 0; s < wide.losses.size(); ++s)
      EXPECT_NEAR(half.losses[s], wide.losses[s], 0x1p-8 * wide.losses[s]) << layout << ", step " << s;
    EXPECT_NE(half.losses, wide.losses);
  }
}

// The table of positions matters most: whole, over the sequence's devices and in a ring's order it is the
// same.
TEST(Gpt2, GoesOnUnderAnotherLayout) {
  const TemporaryDirectory dir;
  const std::string path = (dir / "checkpoint").string();
  const RunResult whole = run_in_process(job_of("dp:1"));
  const RunResult saved = run_in_process(job_of("ring:2 tp:2 sp"), {.save_to = path, .steps = 6});
  for (const char* layout : {"dp:1", "cp:2 dp:2 zero3", "tpx:2 tpy:2", "pp:2 ring:2"}) {
    const RunResult loaded = run_in_process(job_of(layout), {.load_from = path, .first_step = 6, .steps = 6});
    EXPECT_TRUE(loaded.weights == saved.weights) << layout;
    EXPECT_TRUE(loaded.moments == saved.moments) << layout;
    const RunResult rest = run_in_process(job_of(layout), {.load_from = path, .first_step = 6});
    for (std::size_t s = 0; s < rest.losses.size(); ++s)
      EXPECT_NEAR(rest.losses[s], whole.losses[s + 6], 1e-4 * whole.losses[s + 6]) << layout;
  }
}

// The checkpoint has the form of the hub's "gpt2": without the head, so without the prefix, and with the mask
// of each layer.
TEST(Gpt2, StartsFromACheckpointOfTheModelWithoutItsHead) {
  const TemporaryDirectory dir;
  const std::string path = (dir / "checkpoint").string(), file = path + "/model.safetensors";
  const RunResult saved = run_in_process(job_of("dp:1"), {.save_to = path, .steps = 6});
  {
    const SafetensorsReader reader(file);
    const std::string prefix = "transformer.";
    const std::vector<float> mask(16, 1);
    std::vector<TensorInfo> infos{{"h.0.attn.bias", DType::kF32, {1, 1, 4, 4}}};
    std::vector<std::span<const std::byte>> data{std::as_bytes(std::span(mask))};
    for (const auto& [name, view] : reader.tensors()) {
      ASSERT_TRUE(name.starts_with(prefix)) << name;
      infos.push_back({name.substr(prefix.size()), view.info.dtype, view.info.shape});
      data.push_back(view.data);
    }
    SafetensorsWriter writer(file, infos);
    for (std::size_t i = 0; i < infos.size(); ++i) writer.write(i, 0, data[i]);
    writer.commit();
  }
  for (const char* layout : {"dp:1", "dp:2 tp:2 sp"}) {
    const RunResult loaded = run_in_process(job_of(layout), {.load_from = path, .first_step = 12});
    EXPECT_TRUE(loaded.weights == saved.weights) << layout;
  }
}

TEST(Gpt2, RecomputationChangesNoBit) {
  for (const char* layout : {"dp:1", "tp:2 sp", "tpx:2 tpy:2", "pp:2 zero_bubble bf16"}) {
    Job job = job_of(layout);
    job.training.steps = 4;
    const RunResult kept = run_in_process(job);
    for (const char* policy : {"selective", "full"}) {
      job.training.recompute = {{policy, 0, job.model.layers - 1}};
      const RunResult again = run_in_process(job);
      EXPECT_EQ(again.losses, kept.losses) << layout << ", " << policy;
      EXPECT_TRUE(again.weights == kept.weights) << layout << ", " << policy;
    }
  }
}

// A row of the embedding without a token in any text changes by weight decay alone.
TEST(Gpt2, PositionsBehindTheTextStay) {
  Job job = job_of("dp:1");
  job.training.weight_decay = 0;
  const std::vector<float> before = run_in_process(job, {.first_step = job.training.steps})
                                        .weights.at("positions"),
                           after = run_in_process(job).weights.at("positions");
  const auto text = static_cast<std::ptrdiff_t>(job.model.sequence * job.model.hidden);
  ASSERT_GT(std::ssize(before), text);
  EXPECT_TRUE(std::equal(before.begin() + text, before.end(), after.begin() + text));
  EXPECT_FALSE(std::equal(before.begin(), before.begin() + text, after.begin()));
}

}  // namespace
}  // namespace hyperrun::testing
