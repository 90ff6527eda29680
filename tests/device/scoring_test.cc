// Log probabilities of given texts: the same as on one device under every layout, as in the training's loss,
// and as a generation has reported them.
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

// Trained weights in a checkpoint, which every layout loads.
class Scoring : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory();
    train(small_job("dp:1"), path("llama"));
  }
  static void TearDownTestSuite() {
    delete directory_;
    directory_ = nullptr;
  }

  static std::string path(const std::string& model) { return (*directory_ / model).string(); }

  static void train(Job job, const std::string& into) {
    job.training.steps = 6;
    run_in_process(job, {.save_to = into});
  }

  static std::vector<float> score(const Job& job, const Samples& samples, const std::string& from) {
    RunOptions options;
    options.load_from = from;
    options.only_scores = true;
    options.samples = [&](std::int64_t) { return samples; };
    return run_in_process(job, options).logp;
  }

  static TemporaryDirectory* directory_;
};
TemporaryDirectory* Scoring::directory_ = nullptr;

TEST_F(Scoring, EveryLayoutSaysWhatOneDeviceSays) {
  const Samples samples = to_be_scored(made_up_samples(small_job("dp:1"), 0));
  const std::vector<float> one = score(small_job("dp:1"), samples, path("llama"));
  ASSERT_EQ(one.size(), samples.ids.size());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i] == 0, samples.targets[i] < 0) << i;
  for (const std::string layout :
       {"dp:2", "dp:8", "tp:4", "tp:2 sp", "dp:2 tp:2 sp zero1", "dp:4 zero3", "cp:4", "ring:4",
        "ring:2 cp:2 tp:2 sp", "tpx:2 tpy:2", "pp:2", "pp:2 dp:2 tp:2", "pp:2 ring:2"}) {
    EXPECT_LT(relative(one, score(small_job(layout), samples, path("llama"))), 1e-5) << layout;
  }
  // A rounding to bfloat16 changes a logit, of some units, by up to 2^-8 of it, and so does each layer.
  for (const std::string layout : {"dp:1 bf16", "dp:2 tp:2 sp bf16", "pp:2 bf16"})
    EXPECT_LT(relative(one, score(small_job(layout), samples, path("llama"))), 0x1p-7) << layout;
}

TEST_F(Scoring, InPassesOfAMicroBatch) {
  Job job = small_job("dp:2");
  const Samples samples = to_be_scored(made_up_samples(job, 0));
  const std::vector<float> whole = score(job, samples, path("llama"));
  job.training.micro_batches = 4;  // products of other sizes add up in another order
  EXPECT_LT(relative(whole, score(job, samples, path("llama"))), 1e-6);
}

TEST_F(Scoring, OfOtherModels) {
  for (const bool gpt2 : {true, false}) {
    const auto of = [&](const std::string& layout) {
      Job job = small_job(layout);
      gpt2 ? become_gpt2(job) : become_deepseek(job);
      job.model.mtp = {};
      return job;
    };
    const std::string weights = path(gpt2 ? "gpt2" : "deepseek");
    train(of("dp:1"), weights);
    const Samples samples = to_be_scored(made_up_samples(of("dp:1"), 0));
    const std::vector<float> one = score(of("dp:1"), samples, weights);
    for (const std::string layout : {"dp:2 tp:2 sp", "cp:2", "pp:2"})
      EXPECT_LT(relative(one, score(of(layout), samples, weights)), 1e-5) << gpt2 << " " << layout;
  }
}

// The mean over the same tokens, by the weights at the start of the step.
TEST_F(Scoring, IsWhatTheTrainingsLossIsMadeOf) {
  for (const std::string layout : {"dp:1", "dp:2 tp:2 sp", "dp:2 tp:2 sp bf16"}) {
    const Job job = small_job(layout);
    Samples samples = to_be_scored(made_up_samples(job, 3));
    RunOptions options;
    options.load_from = path("llama");
    options.first_step = 6;
    options.steps = 7;
    options.batch = [&](auto, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
      for (std::int64_t s = 0; s < count; ++s) {
        const std::int64_t at = (first + s) * samples.tokens + from;
        std::copy_n(&samples.ids[static_cast<std::size_t>(at)], length, ids + s * length);
        std::copy_n(&samples.targets[static_cast<std::size_t>(at)], length, targets + s * length);
      }
    };
    const double loss = run_in_process(job, options).losses.at(0);
    const std::vector<float> logp = score(job, samples, path("llama"));
    const double mean = std::accumulate(logp.begin(), logp.end(), 0.0) / static_cast<double>(logp.size());
    EXPECT_NEAR(-mean, loss, 1e-6 * loss) << layout;
  }
}

// A rollout reports the log probabilities that scoring gives at the same temperature.
TEST_F(Scoring, SaysWhatTheRolloutHasSaid) {
  for (const std::string layout : {"dp:1", "dp:2 tp:2 sp", "ring:2", "pp:2"})
    for (const double temperature : {0.7, 1.0}) {
      Job job = small_job(layout);
      job.run.generate = {.tokens = 7, .temperature = temperature, .top_k = 40, .top_p = 0.9};
      job.training.policy = {.clip = 0.2, .temperature = temperature};
      job.inference.slots = 4;
      RunOptions options;
      options.load_from = path("llama");
      options.only_generates = true;
      options.prompts.clear();
      for (int i = 0; i < 8; ++i)
        options.prompts.push_back(std::vector<std::int32_t>(static_cast<std::size_t>(1 + 3 * i), 7 + i));
      const RunResult rollout = run_in_process(job, options);

      Samples samples;
      samples.tokens = job.model.sequence;
      samples.ids.assign(static_cast<std::size_t>(8 * samples.tokens), 0);
      samples.targets.assign(samples.ids.size(), -1);
      std::vector<float> said(samples.ids.size());
      for (int i = 0; i < 8; ++i) {
        std::vector<std::int32_t> text = options.prompts[static_cast<std::size_t>(i)];
        const std::size_t prompt = text.size(), at = static_cast<std::size_t>(i * samples.tokens);
        for (const int token : rollout.grown.at(i)) text.push_back(token);
        std::copy(text.begin(), text.end(), samples.ids.begin() + static_cast<std::ptrdiff_t>(at));
        for (std::size_t t = prompt; t < text.size(); ++t) {
          samples.targets[at + t - 1] = text[t];
          said[at + t - 1] = rollout.grown_logp.at(i).at(t - prompt);
        }
      }
      EXPECT_LT(relative(said, score(job, samples, path("llama"))), 1e-5) << layout << ", " << temperature;
    }
}

}  // namespace
}  // namespace hyperrun::testing
