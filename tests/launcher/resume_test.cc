// Runs that continue from a checkpoint end like the uninterrupted run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Resume : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = std::make_unique<Workspace>();
    text_ = edited(kJob, {{"directory: \"out\"", "checkpoint_every: 3"}});
    job_ = workspace_->job(text_);
    ASSERT_THAT(workspace_->run(hyperrun({job_, "--run-dir", "whole"})), Succeeded());
  }
  static void TearDownTestSuite() { workspace_.reset(); }
  void TearDown() override { EXPECT_TRUE(workspace_->nothing_left()); }

  static fs::path at(std::string_view name) { return *workspace_ / name; }
  static std::vector<double> whole_from(std::size_t step) {
    const std::vector<double> all = losses(at("whole"));
    return {all.begin() + static_cast<std::ptrdiff_t>(step), all.end()};
  }
  static std::string model(const fs::path& run_directory, const std::string& step = "step-000006") {
    return content(run_directory / "checkpoints" / step / "model.safetensors");
  }
  static Finished resume(const std::string& job, const std::string& checkpoint,
                         const std::string& directory) {
    return workspace_->run(hyperrun({job, "--resume", checkpoint, "--run-dir", directory}));
  }

  static inline std::unique_ptr<Workspace> workspace_;
  static inline std::string text_, job_;
};

TEST_F(Resume, FromACheckpointToTheBit) {
  fs::create_directory(at("whole/checkpoints/.step-000005.partial"));
  const Finished f = resume(job_, "whole/checkpoints/step-000003", "resumed");
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, HasSubstr("resumed after step 3"));
  EXPECT_FALSE(fs::exists(at("whole/checkpoints/.step-000005.partial"))) << "left by a killed device";
  EXPECT_EQ(losses(at("resumed")), whole_from(3));
  EXPECT_EQ(read_metrics(at("resumed/metrics.jsonl")).front().step, 4);
  EXPECT_EQ(model(at("resumed")), model(at("whole")));
  EXPECT_EQ(content(at("resumed/checkpoints/step-000006/optimizer.safetensors")),
            content(at("whole/checkpoints/step-000006/optimizer.safetensors")));
}

// Another program's checkpoint has neither; for one's own that is reported.
TEST_F(Resume, SaysWhatACheckpointHasNot) {
  fs::copy(at("whole/checkpoints/step-000003"), at("bare"), fs::copy_options::recursive);
  fs::remove(at("bare/optimizer.safetensors"));
  const Finished f = resume(job_, "bare", "from-bare");
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, HasSubstr("resumed after step 3"));
  EXPECT_THAT(f.out, HasSubstr("warning: it has no moments"));
  const Finished checked = workspace_->run(hyperrun({"check", job_, "--resume", "bare"}));
  EXPECT_THAT(checked.out, HasSubstr("warning: it has no moments"));
  fs::remove(at("bare/hyperrun_state.json"));
  EXPECT_THAT(resume(job_, "bare", "from-weights").out, HasSubstr("starts at step 1 with the weights of"));
}

TEST_F(Resume, FromTheLastCheckpointOfARunDirectoryUnderAForeignMpirun) {
  fs::copy(at("whole"), at("stopped"), fs::copy_options::recursive);
  fs::remove_all(at("stopped/checkpoints/step-000006"));
  ASSERT_THAT(workspace_->run(mpirun(2, {job_, "--resume", "stopped", "--run-dir", "foreign"})), Succeeded());
  EXPECT_EQ(losses(at("foreign")), whole_from(3));
  EXPECT_EQ(model(at("foreign")), model(at("whole")));
}

// The job, its corpus, the run directory and the checkpoint lie in a folder with a Latin-1 name.
TEST_F(Resume, InAFolderWhoseNameIsNoUtf8) {
  const fs::path folder = at("caf\xe9");
  fs::create_directory(folder);
  fs::copy(at("corpus.txt"), folder / "corpus.txt");
  const std::string job = workspace_->job(text_, "caf\xe9/job.textproto"), out = folder / "out";
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", out})), Succeeded());
  EXPECT_EQ(losses(out), losses(at("whole")));
  ASSERT_THAT(resume(out + "/job.textproto", out + "/checkpoints/step-000003", folder / "resumed"),
              Succeeded());
  EXPECT_EQ(model(folder / "resumed"), model(at("whole")));
  put_file(folder / "resumed/checkpoints/step-000006/model.safetensors", "damaged");
  const Finished damaged = workspace_->run(hyperrun({"generate", folder / "resumed"}));
  EXPECT_THAT(damaged.err, HasSubstr("caf\xe9/resumed/checkpoints/step-000006/model.safetensors: error["));
}

TEST_F(Resume, UnderAnotherLayout) {
  const std::string tp =
      workspace_->job(edited(text_, {{R"(mesh { name: "dp" size: 2 } presets: "dp")",
                                      R"(mesh { name: "tp" size: 2 } presets: ["tp", "sp"])"}}),
                      "tp.textproto");
  ASSERT_THAT(resume(tp, "whole/checkpoints/step-000003", "tp"), Succeeded());
  EXPECT_THAT(losses(at("tp")), RelativelyNear(whole_from(3), 1e-4));

  const std::string one =
      workspace_->job(edited(text_, {{"devices: 2", "devices: 1"},
                                     {R"(parallel { mesh { name: "dp" size: 2 } presets: "dp" })", ""}}),
                      "one.textproto");
  ASSERT_THAT(resume(one, "whole/checkpoints/step-000003", "one"), Succeeded());
  EXPECT_THAT(losses(at("one")), RelativelyNear(whole_from(3), 1e-4));
}

TEST_F(Resume, SaysWhichLearningRatesAndSamplesAreOthers) {
  const std::string job = workspace_->job(
      edited(text_, {{"steps: 6", "steps: 12"}, {"batch: 8", "batch: 4"}}), "longer.textproto");
  const auto expect_told = [](const Finished& f) {
    ASSERT_THAT(f, Succeeded());
    EXPECT_THAT(f.out,
                HasSubstr("training: warning: the learning rate is not that of the run of the checkpoint: "
                          "steps is 12 (there 6); step 4 takes 0.00293, there it would be 0.0026\n  fix: "));
    EXPECT_THAT(
        f.out,
        HasSubstr("training.batch: the batch is 4, in the run of the checkpoint 8: goes on with sample "
                  "25, the next not seen yet\n"));
  };
  expect_told(workspace_->run(hyperrun({"check", job, "--resume", "whole/checkpoints/step-000003"})));
  expect_told(resume(job, "whole/checkpoints/step-000003", "longer"));
  EXPECT_THAT(resume(job_, "whole/checkpoints/step-000003", "same").out, Not(HasSubstr("warning")));
}

// With hardly any learning rate the loss of a step is that of its samples alone, so that two steps of half a
// batch have the mean loss of one step of a whole batch, if they see the same samples.
TEST_F(Resume, GoesOnWithTheNextSampleWhenTheBatchChanges) {
  const std::string still =
      edited(text_, {{"lr: 3e-3", "lr: 1e-12"}, {"warmup_steps: 2", "warmup_steps: 0"}});
  const std::string job = workspace_->job(still, "still.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "still"})), Succeeded());
  const std::vector<double> whole = losses(at("still"));
  const std::string halves = workspace_->job(
      edited(still, {{"batch: 8", "batch: 4"}, {"steps: 6", "steps: 9"}}), "halves.textproto");
  ASSERT_THAT(resume(halves, "still/checkpoints/step-000003", "halves"), Succeeded());
  const std::vector<double> half = losses(at("halves"));
  ASSERT_EQ(half.size(), 6U);
  std::vector<double> means;
  for (std::size_t i = 0; i < half.size(); i += 2) means.push_back((half[i] + half[i + 1]) / 2);
  EXPECT_THAT(means, RelativelyNear(std::vector<double>(whole.begin() + 3, whole.end()), 1e-6));

  // The chain goes on: 24 samples in three steps of eight, then 24 in six of four.
  const auto state = nlohmann::json::parse(content(at("halves/checkpoints/step-000009/hyperrun_state.json")));
  EXPECT_EQ(state.at("next_sample"), 48);
  EXPECT_EQ(state.at("trained_with").at("batch"), 4);
}

// The numbers of an earlier version's checkpoint are those of the job in its run directory.
TEST_F(Resume, FromACheckpointOfAnEarlierVersion) {
  fs::copy(at("whole"), at("earlier"), fs::copy_options::recursive);
  const fs::path checkpoint = at("earlier/checkpoints/step-000003");
  fs::remove(checkpoint / "hyperrun_state.json");
  put_file(checkpoint / "trainer_state.json", R"({"next_step": 3, "seed": 1})");
  ASSERT_THAT(resume(job_, checkpoint, "from-earlier"), Succeeded());
  EXPECT_EQ(losses(at("from-earlier")), whole_from(3));
  const std::string wide = workspace_->job(edited(text_, {{"batch: 8", "batch: 16"}}), "wide.textproto");
  EXPECT_THAT(resume(wide, checkpoint, "wide-earlier").out,
              HasSubstr("the batch is 16, in the run of the checkpoint 8: goes on with sample 25"));
}

TEST_F(Resume, OfAFinishedRunOnlyGenerates) {
  const std::string job = workspace_->job(
      edited(text_, {{"checkpoint_every: 3", R"(checkpoint_every: 3 generate { prompt: "The" tokens: 4 })"}}),
      "generate.textproto");
  const Finished f = resume(job, "whole", "generated");
  ASSERT_THAT(f, Succeeded());
  EXPECT_EQ(losses(at("generated")), std::vector<double>());
  EXPECT_TRUE(content(at("generated/generated.txt")).starts_with("The"));
  EXPECT_EQ(f.out.find("did not use the memory"), std::string::npos) << f.out;
}

// The check follows the same rules as the run.
TEST_F(Resume, IsCheckedWithoutARun) {
  const auto check = [&](const std::string& checkpoint) {
    return workspace_->run(hyperrun({"check", job_, "--resume", checkpoint}));
  };
  EXPECT_THAT(check("whole/checkpoints/step-000003"), Succeeded());
  fs::copy(at("whole/checkpoints/step-000003"), at("cut"), fs::copy_options::recursive);
  fs::resize_file(at("cut/model.safetensors"), fs::file_size(at("cut/model.safetensors")) - 8);
  for (const Finished& f : {check("cut"), resume(job_, "cut", "never")}) {
    EXPECT_EQ(f.status, 6) << f;
    EXPECT_THAT(f.err, HasSubstr("cut/model.safetensors: ")) << f;
  }
  EXPECT_EQ(check("nowhere").status, 6);
  EXPECT_FALSE(fs::exists(at("never")));
}

// A checkpoint of weights alone, as others publish them, starts a fresh training.
TEST_F(Resume, FromWeightsWithoutOptimizerStartsAtTheFirstStep) {
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"}) {
    fs::create_directories(at("weights"));
    fs::copy(at("whole/checkpoints/step-000006") / name, at("weights") / name);
  }
  auto config = nlohmann::json::parse(content(at("weights/config.json")));
  config["eos_token_id"] = {3, 0};
  std::ofstream(at("weights/config.json")) << config.dump();
  ASSERT_THAT(resume(job_, "weights", "fine-tuned"), Succeeded());
  const std::string saved = content(at("fine-tuned/checkpoints/step-000006/config.json"));
  EXPECT_EQ(nlohmann::json::parse(saved).at("eos_token_id"), config.at("eos_token_id"));
  const std::vector<double> loss = losses(at("fine-tuned"));
  ASSERT_EQ(loss.size(), 6U);
  EXPECT_LT(loss.front(), losses(at("whole"))[3]);  // goes on from the trained weights
}

TEST_F(Resume, AfterAKilledDeviceAsIfNothingHadHappened) {
  const std::string job = workspace_->job(
      edited(text_, {{"steps: 6", "steps: 90"}, {"checkpoint_every: 3", "checkpoint_every: 15"}}),
      "long.textproto");
  const auto run = workspace_->start(hyperrun({job, "--run-dir", "killed"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(at("killed/checkpoints/step-000015")); }, Seconds(20)))
      << run->err();
  fs::create_directory(at("killed/checkpoints/.step-000099.partial"));
  workspace_->kill_device(1);
  EXPECT_EQ(run->wait(Seconds(20)).status, 8);
  EXPECT_FALSE(fs::exists(at("killed/checkpoints/.step-000099.partial"))) << "no device can be writing it";
  ASSERT_FALSE(fs::exists(at("killed/checkpoints/step-000090"))) << "it was over before it was killed";

  ASSERT_THAT(resume(job, "killed", "survived"), Succeeded());
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "undisturbed"})), Succeeded());
  EXPECT_EQ(model(at("survived"), "step-000090"), model(at("undisturbed"), "step-000090"));
  const std::vector<double> all = losses(at("undisturbed")), last = losses(at("survived"));
  EXPECT_TRUE(std::equal(last.rbegin(), last.rend(), all.rbegin()));
}

// What is drawn for a prompt depends on the seed, the prompt's number and the position alone.
class Generate : public Resume {
 protected:
  void SetUp() override {
    std::ofstream prompts(at("prompts.txt"));
    for (int i = 0; i < 60; ++i) prompts << "The harbour " << i << "\n";
  }

  static Command generate(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"generate", "whole", "--prompts",     "prompts.txt", "--tokens", "12",
                                   "--slots",  "2",     "--context",     "32",          "--out",    out,
                                   "--seed",   "5",     "--temperature", "0.9"};
    words.insert(words.end(), more.begin(), more.end());
    return hyperrun(words);
  }

  // The number of texts in a file that is not whole.
  static int texts(const std::string& partial) {
    return fs::exists(at(partial)) ? occurrences(content(at(partial)), "\"id\"") : 0;
  }
};

TEST_F(Generate, GoesOnByItselfAfterALoss) {
  ASSERT_THAT(workspace_->run(generate("whole.jsonl")), Succeeded());
  const auto run = workspace_->start(generate("lost.jsonl", {"--restarts", "2"}));
  ASSERT_TRUE(eventually([&] { return texts("lost.jsonl.partial") >= 4; }, Seconds(20))) << run->err();
  workspace_->kill_device(1);
  const Finished ended = run->wait(Seconds(40));
  ASSERT_THAT(ended, Succeeded()) << ended;
  EXPECT_EQ(ended.out, "lost.jsonl: 60 texts\n");
  EXPECT_THAT(ended.err, HasSubstr("restart 1 of 2, for the prompts without a text")) << ended;
  EXPECT_EQ(content(at("lost.jsonl")), content(at("whole.jsonl")));
}

TEST_F(Generate, AnInterruptedOneGoesOnWithThePromptsThatHaveNoText) {
  const Finished undisturbed = workspace_->run(generate("undisturbed.jsonl"));
  ASSERT_THAT(undisturbed, Succeeded()) << undisturbed;
  EXPECT_EQ(undisturbed.out, "undisturbed.jsonl: 60 texts\n");
  EXPECT_FALSE(fs::exists(at("undisturbed.jsonl.partial")));

  const auto results = [&] { return texts("cut.jsonl.partial"); };
  const auto run = workspace_->start(generate("cut.jsonl"));
  ASSERT_TRUE(eventually([&] { return results() >= 4; }, Seconds(20))) << run->err();
  workspace_->kill_device(1);
  const Finished killed = run->wait(Seconds(20));
  EXPECT_EQ(killed.status, 8) << killed;
  EXPECT_THAT(killed.err, HasSubstr("of 60 texts are in cut.jsonl.partial; the same command with --resume"));
  EXPECT_FALSE(fs::exists(at("cut.jsonl")));
  std::ofstream(at("cut.jsonl.partial"), std::ios::app) << R"({"id": 59, "prompt": "The har)";  // cut short
  EXPECT_THAT(workspace_->run(generate("cut.jsonl")).err, HasSubstr("add --resume, or remove that file"));
  EXPECT_THAT(
      workspace_->run(generate("cut.jsonl", {"--resume", "--top-k", "3"})).err,
      HasSubstr("cut.jsonl.partial:1: error[bad-value]: its texts were drawn with top_k 0, now it is 3"));

  const int before = results() - 1;
  const Finished rest = workspace_->run(generate("cut.jsonl", {"--resume"}));
  ASSERT_THAT(rest, Succeeded()) << rest;
  EXPECT_EQ(rest.out, "cut.jsonl: 60 texts, " + std::to_string(before) + " of them from before\n");
  EXPECT_EQ(content(at("cut.jsonl")), content(at("undisturbed.jsonl")));
  const Finished again = workspace_->run(generate("cut.jsonl", {"--resume"}));
  EXPECT_EQ(again.out, "cut.jsonl: 60 texts, 60 of them from before\n") << again;
}

}  // namespace
}  // namespace hyperrun::testing
