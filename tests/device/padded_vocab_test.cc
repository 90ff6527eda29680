// Vocabularies that the devices do not divide. They are padded, and the padding changes no result and no
// file.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

constexpr std::int32_t kPrime = 257;

struct Model {
  const char* name;
  void (*become)(Job&);
};
const Model kModels[] = {{"llama", [](Job&) {}},
                         {"tied", [](Job& job) { job.model.tied_head = true; }},
                         {"gpt2", become_gpt2},
                         {"deepseek", become_deepseek}};

Job job_of(const Model& model, const std::string& layout) {
  Job job = small_job(layout);
  model.become(job);
  job.model.vocab = kPrime;
  job.training.steps = 6;
  return job;
}

class PaddedVocabulary : public ::testing::TestWithParam<Model> {};

TEST_P(PaddedVocabulary, EqualsOneDevice) {
  const auto run = [](Job job) {
    job.run.generate.tokens = 6;
    return run_in_process(job);
  };
  const RunResult one = run(job_of(GetParam(), "dp:1"));
  for (const char* layout : {"tp:2", "dp:2 tp:4 sp zero1", "tpx:2 tpy:2", "pp:2 tp:2 dp:2 zero3"}) {
    const RunResult many = run(job_of(GetParam(), layout));
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s], one.losses[s], 1e-5 * one.losses[s]) << layout << ", step " << s;
    EXPECT_EQ(many.tokens, one.tokens) << layout;
    EXPECT_TRUE(many.strays.empty()) << layout;
  }
}

// A checkpoint has the model's vocabulary, whatever the layout, and goes on under every other layout.
TEST_P(PaddedVocabulary, IsCutOffInCheckpoints) {
  const TemporaryDirectory dir;
  const std::string first = (dir / "first").string(), again = (dir / "again").string();
  run_in_process(job_of(GetParam(), "tp:4 dp:2"), {.save_to = first, .steps = 3});
  for (const char* layout : {"dp:1", "tp:2 sp", "tpx:2 tpy:2"}) {
    run_in_process(job_of(GetParam(), layout),
                   {.save_to = again, .load_from = first, .first_step = 3, .steps = 3});
    for (const char* file : {"/model.safetensors", "/optimizer.safetensors"}) {
      const SafetensorsReader before(first + file), after(again + file);
      ASSERT_EQ(before.tensors().size(), after.tensors().size());
      int of_vocabulary = 0;
      for (const auto& [name, view] : before.tensors()) {
        of_vocabulary += view.info.shape.front() == kPrime;
        const auto bytes = after.get(name, view.info.shape).data;
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), view.data.begin())) << layout << " " << name;
      }
      EXPECT_GT(of_vocabulary, 0) << file;
    }
  }
}

// Were the padding not masked, the temperature would make it likely: its logits are near 0, as all others
// are.
TEST_P(PaddedVocabulary, IsNeverDrawn) {
  for (const char* layout : {"tp:4", "tpx:4 tpy:1"}) {
    Job job = job_of(GetParam(), layout);
    job.model.vocab = kPrime;
    job.run.generate.tokens = 12;
    job.run.generate.temperature = 100;
    const RunResult drawn = run_in_process(job, {.steps = 1});
    for (const int token : drawn.tokens) EXPECT_LT(token, kPrime) << layout;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PaddedVocabulary, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hyperrun::testing
