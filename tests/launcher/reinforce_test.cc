// Programs side by side that learn from rewards, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr const char* kModel = R"(
model { layers: 1 hidden: 32 heads: 2 vocab: 258 sequence: 16 tied_head: true }
)";

// The corpus: lines in which each letter is followed by 1 as often as by 2.
const std::string kText = std::string("supernode { devices: 1 hbm: \"32 MiB\" }") + kModel + R"(
data { corpus: "coins.txt" }
training { steps: 150 batch: 8 lr: 1e-2 }
run { directory: "text" }
)";

// The job that learns that 1 is the answer.
const std::string kLearn = std::string("supernode { devices: 4 hbm: \"32 MiB\" }") + kModel + R"(
data { tasks: "coins.jsonl" }
training { steps: 25 batch: 32 lr: 5e-3 weight_decay: 0 policy { clip: 0.2 kl: 0.01 } }
reinforcement { samples: 8 tokens: 2 held_back: 4 evaluate_every: 10 }
programs {
  name: "before" does: "score" first_device: 2 devices: 2 inputs: "actor"
  parallel { mesh { name: "tp" size: 2 } presets: "tp" }
}
programs {
  name: "actor" does: "generate" devices: 2 weights: "learner"
  parallel { mesh { name: "dp" size: 2 } presets: "dp" }
  inference { slots: 16 page: 4 }
}
programs { name: "judge" does: "reward" inputs: "actor" }
programs {
  name: "learner" does: "train" first_device: 2 devices: 2 inputs: ["actor", "judge", "before"]
  parallel { mesh { name: "dp" size: 2 } presets: ["dp", "zero1"] }
}
run { directory: "out" resume: "text" }
)";

class Reinforcement : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = new Workspace;
    std::ofstream text(*workspace_ / "coins.txt"), tasks(*workspace_ / "coins.jsonl");
    unsigned state = 7;
    for (int i = 0; i < 4000; ++i) {
      state = state * 1103515245u + 12345u;
      text << static_cast<char>('a' + (state >> 8) % 26) << '=' << (state >> 20) % 2 + 1 << '\n';
    }
    for (char c = 'a'; c <= 'z'; ++c) tasks << R"({"prompt": ")" << c << R"(=", "answer": "1"})" << '\n';
    text.close();
    tasks.close();
    read_ = workspace_->run(hyperrun({workspace_->job(kText, "text.textproto")}), Seconds(120));
  }
  static void TearDownTestSuite() { delete workspace_; }
  void SetUp() override { ASSERT_THAT(read_, Succeeded()) << read_; }

  static Finished learn(const std::vector<Edit>& edits = {}) {
    return workspace_->run(hyperrun({workspace_->job(edited(kLearn, edits), "learn.textproto")}),
                           Seconds(120));
  }

  static std::vector<nlohmann::json> lines(const std::string& directory, const char* key) {
    return workspace_->metrics(directory, key);
  }

  static Workspace* workspace_;
  static Finished read_;
};
Workspace* Reinforcement::workspace_ = nullptr;
Finished Reinforcement::read_;

TEST_F(Reinforcement, LearnsWhatIsRewarded) {
  const Finished run = learn();
  ASSERT_THAT(run, Succeeded()) << run;
  const auto steps = lines("out", "reward"), evaluations = lines("out", "held_back_reward");
  ASSERT_EQ(steps.size(), 25U);
  ASSERT_EQ(evaluations.size(), 4U);  // after 0, 10, 20 and 25 steps
  // Half of the answers to some 6 tasks are right at first; at the end nearly all to tasks never trained on.
  EXPECT_LT(evaluations.front()["held_back_reward"], 0.95);
  EXPECT_GT(evaluations.back()["held_back_reward"], 0.95);
  EXPECT_LT(steps.front()["reward"], 0.7);
  EXPECT_GT(steps.back()["reward"], 0.9);
  EXPECT_THAT(files_below(*workspace_ / "out"),
              ::testing::IsSupersetOf({"job.textproto", "manifest.json", "metrics.jsonl", "report.json",
                                       "reward.svg", "tokenizer.json", "trace.pftrace",
                                       "checkpoints/step-000025/model.safetensors"}));

  const Finished generated =
      workspace_->run(hyperrun({"generate", "out", "--prompt", "k=", "--tokens", "1"}));
  ASSERT_THAT(generated, Succeeded()) << generated;
  EXPECT_THAT(generated.out, HasSubstr("k=1"));
  const Finished report = workspace_->run(hyperrun({"report", "out"}));
  ASSERT_THAT(report, Succeeded()) << report;
  EXPECT_THAT(run.out, HasSubstr(report.out));  // as the run printed at its end
  EXPECT_TRUE(workspace_->nothing_left());
}

// The first losses are zero: each completion is as likely as when it was drawn, and advantages add up to 0.
TEST_F(Reinforcement, WithFreshWeightsLearnsFromItsOwnCompletions) {
  ASSERT_THAT(learn({{"directory: \"out\"", "directory: \"fresh\""}, {"steps: 25", "steps: 3"}}),
              Succeeded());
  for (const auto& step : lines("fresh", "reward")) {
    EXPECT_EQ(step["staleness"], 0);
    EXPECT_EQ(step["clipped"], 0.0);
  }
  EXPECT_NEAR(lines("fresh", "reward").front()["kl"].get<double>(), 0, 1e-6);
}

TEST_F(Reinforcement, ComputesTheSameWhereverItsProgramsAre) {
  ASSERT_THAT(learn({{"directory: \"out\"", "directory: \"apart\""}, {"steps: 25", "steps: 6"}}),
              Succeeded());
  const Finished together = learn({{"directory: \"out\"", "directory: \"together\""},
                                   {"steps: 25", "steps: 6"},
                                   {"supernode { devices: 4", "supernode { devices: 2"},
                                   {"does: \"score\" first_device: 2", "does: \"score\""},
                                   {"does: \"train\" first_device: 2", "does: \"train\""}});
  ASSERT_THAT(together, Succeeded()) << together;
  EXPECT_EQ(lines("apart", "step"), lines("together", "step"));
}

// Checkpoints travel through memory without state, even if other state lies above the learner's.
TEST_F(Reinforcement, SavingDisturbsNobody) {
  const std::vector<Edit> together{{"supernode { devices: 4", "supernode { devices: 2"},
                                   {"does: \"score\" first_device: 2", "does: \"score\""},
                                   {"does: \"train\" first_device: 2", "does: \"train\""}};
  for (const auto& [directory, every] : {std::pair{"saves", "checkpoint_every: 1"}, {"saves_not", ""}}) {
    std::vector<Edit> edits = together;
    edits.push_back({"steps: 25", "steps: 5"});
    edits.push_back({"directory: \"out\"", std::string("directory: \"") + directory + "\" " + every});
    ASSERT_THAT(learn(edits), Succeeded());
  }
  EXPECT_EQ(lines("saves", "step"), lines("saves_not", "step"));
}

TEST_F(Reinforcement, LearnsFromOlderWeightsAsFarAsItMay) {
  const Finished run = learn({{"directory: \"out\"", "directory: \"stale\""},
                              {"tokens: 2 held_back: 4", "tokens: 2 held_back: 0 staleness: 2"}});
  ASSERT_THAT(run, Succeeded()) << run;
  for (const auto& step : lines("stale", "reward"))
    EXPECT_THAT(step["staleness"].get<int>(), AllOf(::testing::Ge(0), ::testing::Le(2)));
  EXPECT_GT(lines("stale", "reward").back()["reward"], 0.8);
}

// In order nothing depends on timing, so metrics and state are those of the undisturbed run. The reference
// keeps the first weights, which the learner no longer has.
TEST_F(Reinforcement, AfterAKilledDeviceGoesOnAsIfNothingHadHappened) {
  const std::string job = workspace_->job(
      edited(kLearn, {{"steps: 25", "steps: 60"}, {"directory: \"out\"", "checkpoint_every: 8"}}),
      "long.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "undisturbed"})), Succeeded());
  const auto run = workspace_->start(hyperrun({job, "--run-dir", "killed", "--restarts", "0"}));
  ASSERT_TRUE(
      eventually([&] { return fs::exists(*workspace_ / "killed/checkpoints/step-000016"); }, Seconds(20)))
      << run->err();
  workspace_->kill_device(1);
  const Finished killed = run->wait(Seconds(20));
  EXPECT_EQ(killed.status, 8) << killed;
  EXPECT_THAT(killed.err, HasSubstr("start the job again with --resume"));
  ASSERT_FALSE(fs::exists(*workspace_ / "killed/checkpoints/step-000060")) << "it was over too soon";
  EXPECT_THAT(workspace_->run(hyperrun({"check", job, "--resume", "killed"})).out,
              HasSubstr("resumed after step "));

  const Finished resumed = workspace_->run(hyperrun({job, "--resume", "killed", "--run-dir", "survived"}));
  ASSERT_THAT(resumed, Succeeded()) << resumed;
  EXPECT_THAT(resumed.out, HasSubstr("resumed after step "));
  const std::vector<nlohmann::json> all = lines("undisturbed", "step"), last = lines("survived", "step");
  ASSERT_LT(last.size(), all.size());
  EXPECT_EQ(last, std::vector(all.end() - std::ssize(last), all.end()));
  expect_same_files(*workspace_ / "undisturbed/checkpoints/step-000060",
                    *workspace_ / "survived/checkpoints/step-000060");
  EXPECT_TRUE(fs::exists(*workspace_ / "survived/checkpoints/step-000060/reference/model.safetensors"));
  EXPECT_TRUE(workspace_->nothing_left());
}

// Behind, timing decides which step learns from which weights. What a checkpoint has in its queue is learned
// from all the same, as it was drawn.
TEST_F(Reinforcement, GoesOnByItselfAfterALoss) {
  const Edit with_checkpoints{"directory: \"out\"", "checkpoint_every: 4"};
  const Edit with_a_loss{"directory: \"out\"", "checkpoint_every: 4 chaos { fault { device: 1 step: 10 } }"};
  const std::string whole = workspace_->job(edited(kLearn, {{"steps: 25", "steps: 16"}, with_checkpoints})),
                    lost = workspace_->job(edited(kLearn, {{"steps: 25", "steps: 16"}, with_a_loss}),
                                           "lost.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({whole, "--run-dir", "whole"})), Succeeded());
  const Finished f = workspace_->run(hyperrun({lost, "--run-dir", "lost"}));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, HasSubstr("restart 1 of 3")) << f;
  expect_same_files(*workspace_ / "whole/checkpoints/step-000016",
                    *workspace_ / "lost/checkpoints/step-000016");
}

TEST_F(Reinforcement, GoesOnWithTheBatchesThatNoStepHasLearnedFrom) {
  const std::vector<Edit> behind{{"directory: \"out\"", "checkpoint_every: 2"},
                                 {"tokens: 2 held_back: 4", "tokens: 2 held_back: 0 staleness: 3"}};
  const std::string job = workspace_->job(edited(kLearn, behind), "behind.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", "behind"})), Succeeded());
  std::string from;
  nlohmann::json queued;
  for (const std::string& file : files_below(*workspace_ / "behind/checkpoints"))
    if (file.ends_with("programs_state.json")) {
      const auto state = nlohmann::json::parse(content(*workspace_ / "behind/checkpoints" / file));
      if (state["queued"].size() <= queued.size()) continue;
      queued = state["queued"];
      from = "behind/checkpoints/" + fs::path(file).parent_path().string();
    }
  ASSERT_GT(queued.size(), 0U) << "no checkpoint has a batch in its queue";
  const Finished resumed = workspace_->run(hyperrun({job, "--resume", from, "--run-dir", "went-on"}));
  ASSERT_THAT(resumed, Succeeded()) << resumed;
  EXPECT_THAT(resumed.out, HasSubstr("that no step has learned from"));
  const std::vector<nlohmann::json> steps = lines("went-on", "reward");
  EXPECT_EQ(steps.back()["step"], 25);
  for (std::size_t i = 0; i < queued.size(); ++i) {
    EXPECT_EQ(steps[i]["step"], queued[i]["step"].get<int>() + 1);
    EXPECT_EQ(steps[i]["staleness"], queued[i]["step"].get<int>() - queued[i]["version"].get<int>());
    std::size_t tokens = 0;
    for (const auto& c : queued[i]["completions"]) tokens += c["tokens"].size();
    EXPECT_EQ(steps[i]["length"], static_cast<double>(tokens) / 32);
  }
  for (const auto& step : steps) EXPECT_THAT(step["staleness"].get<int>(), ::testing::Le(3));
}

TEST_F(Reinforcement, GoesOnFromItsOwnCheckpointsOnly) {
  const std::vector<Edit> edits{{"steps: 25", "steps: 2"}, {"directory: \"out\"", "directory: \"two\""}};
  ASSERT_THAT(learn(edits), Succeeded());
  const auto refused = [&](std::vector<Edit> more, const std::string& checkpoint) {
    more.insert(more.end(), edits.begin(), edits.end());
    const std::string job = workspace_->job(edited(kLearn, more), "refused.textproto");
    const Finished f = workspace_->run(hyperrun({job, "--resume", checkpoint, "--run-dir", "never"}));
    EXPECT_EQ(workspace_->run(hyperrun({"check", job, "--resume", checkpoint})).status, f.status);
    EXPECT_FALSE(fs::exists(*workspace_ / "never"));
    return f.err;
  };
  EXPECT_THAT(refused({{"run { ", "run { seed: 2 "}}, "two"),
              HasSubstr("the run of the checkpoint has 1, the job 2"));
  EXPECT_THAT(refused({{"batch: 32", "batch: 64"}}, "two"),
              HasSubstr("the run of the checkpoint has 32, the job 64"));
  EXPECT_THAT(refused({{"samples: 8", "samples: 4"}}, "two"),
              HasSubstr("the run of the checkpoint has 8, the job 4"));
  EXPECT_THAT(refused({{"held_back: 4 evaluate_every: 10", "held_back: 0"}}, "two"),
              HasSubstr("nothing is left to do"));
  fs::copy(*workspace_ / "two/checkpoints/step-000002", *workspace_ / "cut", fs::copy_options::recursive);
  fs::remove_all(*workspace_ / "cut/reference");
  EXPECT_THAT(refused({}, "cut"), HasSubstr("cut/reference"));
  put_file(*workspace_ / "cut/programs_state.json", "{");
  EXPECT_THAT(refused({}, "cut"), HasSubstr("programs_state.json: error[bad-checkpoint]"));

  // A training takes the weights, and nothing of what belongs to the rewards.
  const Finished read = workspace_->run(
      hyperrun({workspace_->job(edited(kText, {{"steps: 150", "steps: 1"}}), "read.textproto"), "--resume",
                "two", "--run-dir", "read"}));
  ASSERT_THAT(read, Succeeded()) << read;
  EXPECT_THAT(read.out, HasSubstr("starts at step 1 with the weights of"));
}

TEST_F(Reinforcement, WorksWithoutAReference) {
  const Finished run = learn({{"directory: \"out\"", "directory: \"free\""},
                              {"steps: 25", "steps: 2"},
                              {"kl: 0.01", ""},
                              {R"(programs {
  name: "before" does: "score" first_device: 2 devices: 2 inputs: "actor"
  parallel { mesh { name: "tp" size: 2 } presets: "tp" }
}
)",
                               ""},
                              {"\"judge\", \"before\"", "\"judge\""}});
  EXPECT_THAT(run, Succeeded()) << run;
}

// 64 completions of two tokens each on 16 slots. In order, one program runs at a time.
TEST_F(Reinforcement, IsSimulatedByItsOwnDriver) {
  const auto sim = [&](const std::vector<Edit>& edits, std::vector<std::string> options) {
    std::vector<std::string> words{"sim", workspace_->job(edited(kLearn, edits), "simulated.textproto")};
    words.insert(words.end(), options.begin(), options.end());
    return workspace_->run(hyperrun(words));
  };
  const Finished in_order = sim({{"steps: 25", "steps: 4"}}, {"--lengths", "2:2", "--json"});
  ASSERT_THAT(in_order, Succeeded()) << in_order;
  const nlohmann::json report = nlohmann::json::parse(in_order.out);
  EXPECT_EQ(report["steps"], 4);
  EXPECT_EQ(report["learned_tokens"], 2 * report["learned_completions"].get<int>());
  EXPECT_EQ(report["filled_slots"], 1.0);
  double alone = 0;
  for (const auto& p : report["programs"])
    alone += p["device_seconds"].get<double>() / p["devices"].get<double>();
  EXPECT_NEAR(report["seconds"], alone, 1e-9);
  const Finished ranged =
      sim({{"steps: 25 ", ""}, {"hbm: \"32 MiB\"", "hbm: \"32 MiB\" profile: \"h100\""}}, {"--json"});
  ASSERT_THAT(ranged, Succeeded()) << ranged;
  const nlohmann::json on_h100 = nlohmann::json::parse(ranged.out), range = on_h100["range"];
  EXPECT_NEAR(range["step_ns"].get<double>(),
              on_h100["seconds"].get<double>() * 1e9 / on_h100["steps"].get<double>(), 1);
  EXPECT_LT(range["fastest_ns"], range["step_ns"]);
  EXPECT_GT(range["slowest_ns"], range["step_ns"]);
  const Finished behind =
      sim({{"tokens: 2 held_back: 4", "tokens: 2 staleness: 2"}}, {"--trace", "t.pftrace"});
  ASSERT_THAT(behind, Succeeded()) << behind;
  EXPECT_THAT(behind.out,
              AllOf(HasSubstr("simulated; completions of 1 to 2 tokens"), HasSubstr("actor decode")));
  EXPECT_GT(std::filesystem::file_size(*workspace_ / "t.pftrace"), 1000U);
  for (const char* lengths : {"2", "2:1", "0:2", "1:3", "1:2:3", ""})
    EXPECT_EQ(sim({}, {"--lengths", lengths}).status, 2) << lengths;
  EXPECT_EQ(sim({}, {"--csv"}).status, 2);
}

TEST_F(Reinforcement, IsCheckedAndRefusedBeforeItStarts) {
  const auto check = [&](const std::vector<Edit>& edits) {
    return workspace_->run(hyperrun({"check", workspace_->job(edited(kLearn, edits), "checked.textproto")}));
  };
  const Finished fine = check({});
  EXPECT_THAT(fine, Succeeded()) << fine;
  EXPECT_THAT(fine.out, AllOf(HasSubstr("learner"), HasSubstr("prefill, decode"), HasSubstr("held back")));

  const Finished small = check({{"hbm: \"32 MiB\"", "hbm: \"1 MiB\""}});
  EXPECT_NE(small.status, 0);
  EXPECT_THAT(small.err, AllOf(HasSubstr("does-not-fit"), HasSubstr("learner")));
  const Finished both = check({{"devices: 4 hbm: \"32 MiB\"", "devices: 2 hbm: \"1300 KiB\""},
                               {"does: \"score\" first_device: 2", "does: \"score\""},
                               {"does: \"train\" first_device: 2", "does: \"train\""}});
  EXPECT_THAT(both.err, AllOf(HasSubstr("does-not-fit"), HasSubstr("learner, before, actor"))) << both;
  const Finished no_tasks = check({{"coins.jsonl", "coins.txt"}});
  EXPECT_THAT(no_tasks.err, AllOf(HasSubstr("bad-corpus"), HasSubstr("coins.txt:1")));
  const Finished too_long = check({{"tokens: 2", "tokens: 15"}});
  EXPECT_THAT(too_long.err, HasSubstr("has 2 tokens"));
  const Finished no_weights = check({{"resume: \"text\"", "resume: \"nothing\""}});
  EXPECT_THAT(no_weights.err, HasSubstr("missing-file"));
  for (const Finished& of_files : {no_tasks, too_long, no_weights})
    EXPECT_THAT(of_files.out, HasSubstr("HBM alone")) << "what can be told without them";
  for (const char* command : {"plan", "verify"}) {
    const Finished refused = workspace_->run(hyperrun({command, workspace_->job(kLearn, "learn.textproto")}));
    EXPECT_THAT(refused.err, HasSubstr("several programs")) << command;
  }
}

// The 24 MiB of windows for HBM fit, of which the ranks touch half; the learner's data in the pool do not fit
// beside them.
TEST_F(Reinforcement, IsRefusedWhereThePoolHasNoRoom) {
  if (workspace_->run(with_shared_memory(64, {"true"})).status != 0)
    GTEST_SKIP() << "no namespace can be made here";
  const std::string job = workspace_->job(R"(supernode { devices: 2 hbm: "6 MiB" pool: "64 MiB" }
model { layers: 2 hidden: 64 heads: 2 vocab: 258 sequence: 64 tied_head: true }
data { tasks: "coins.jsonl" tokenizer: "text/tokenizer.json" }
training { steps: 1 batch: 32 lr: 1e-3 policy { clip: 0.2 } }
reinforcement { samples: 4 tokens: 8 }
programs { name: "actor" does: "generate" devices: 1 weights: "learner" inference { slots: 4 page: 4 } }
programs { name: "judge" does: "reward" inputs: "actor" }
programs {
  name: "learner" does: "train" first_device: 1 devices: 1 inputs: ["actor", "judge"]
  memory { policy: "hyperoffload" }
}
run { directory: "pool" }
)",
                                          "pool.textproto");
  const Finished refused = workspace_->run(with_shared_memory(26000, hyperrun({job})));
  EXPECT_EQ(refused.status, 4) << refused;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("pool.textproto:1:"), HasSubstr("of the pool has no room")));
  EXPECT_FALSE(fs::exists(*workspace_ / "pool")) << "nothing has begun";
}

}  // namespace
}  // namespace hyperrun::testing
