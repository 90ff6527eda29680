// Programs with encoders, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/media/manifest.h"
#include "runtime/media/sound.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"
#include "tests/media/png_writer.h"
#include "tests/media/signals.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The labels: the bright corner of a picture, and the pitch of a tone.
const std::string kJob = R"(
supernode { devices: 5 hbm: "16 MiB" }
model { layers: 2 hidden: 32 heads: 2 vocab: 257 sequence: 48 }
data { samples: "manifest.jsonl" }
training { steps: 4 batch: 8 micro_batches: 4 lr: 3e-3 init_std: 0.1 }
media { most: 2 evaluate: 6 }
programs {
  name: "pictures" does: "encode" devices: 2
  encoder { input: "image" patch: 8 tokens: 4 items: 1 learns: "category" layers: 1 hidden: 32 heads: 2 }
  parallel { mesh { name: "dp" size: 2 } presets: "dp" }
}
programs {
  name: "sounds" does: "encode" first_device: 2 devices: 1
  encoder { input: "audio" mel_bins: 16 frames: 4 tokens: 4 items: 2 layers: 1 hidden: 32 heads: 2 }
}
programs {
  name: "text" does: "train" first_device: 3 devices: 2 inputs: ["pictures", "sounds"]
  parallel { mesh { name: "pp" size: 2 } pipeline { axis: "pp" } }
}
run { directory: "out" }
)";

const std::vector<Edit> kTogether{{"devices: 5", "devices: 2"},
                                  {"first_device: 2 devices: 1", "devices: 1"},
                                  {"first_device: 3 devices: 2", "devices: 2"}};

PngPicture corner(int which, int noise) {
  PngPicture p = ramp(16, 16);
  for (std::size_t y = 0; y < 16; ++y)
    for (std::size_t x = 0; x < 16; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const bool bright = (x / 8) + 2 * (y / 8) == static_cast<std::size_t>(which);
        p.rows[y][3 * x + c] =
            static_cast<std::uint8_t>((bright ? 200 : 20) + (static_cast<int>(x * y) * noise) % 40);
      }
  return p;
}

class Omni : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = new Workspace;
    std::vector<MediaSample> samples;
    const char* const corners[] = {"north west", "north east", "south west", "south east"};
    for (int i = 0; i < 40; ++i) {
      const std::string name = "p" + std::to_string(i);
      std::ofstream(*workspace_ / (name + ".png"), std::ios::binary) << png_of(corner(i % 4, 1 + i / 4));
      samples.push_back({name,
                         "a corner",
                         {name + ".png", ""},
                         {},
                         corners[i % 4],
                         i < 32 ? MediaSplit::kTrain : MediaSplit::kHeldBack});
    }
    for (int i = 0; i < 30; ++i) {
      const std::string name = "s" + std::to_string(i);
      const double hertz = i % 2 == 0 ? 300 + 7 * i : 3000 + 40 * i;
      std::ofstream(*workspace_ / (name + ".wav"), std::ios::binary)
          << encode_wav({16000, sine(hertz, 16000, 3200 + 800 * static_cast<std::size_t>(i % 5), 0.5)});
      samples.push_back({name,
                         i % 2 == 0 ? "low" : "high",
                         {},
                         {name + ".wav", ""},
                         "tone",
                         i < 24 ? MediaSplit::kTrain : MediaSplit::kHeldBack});
    }
    write_manifest(*workspace_ / "manifest.jsonl", samples);
  }
  static void TearDownTestSuite() { delete workspace_; }

  static Finished run(const std::string& directory, std::vector<Edit> edits = {}) {
    edits.push_back({"\"out\"", "\"" + directory + "\""});
    return workspace_->run(hyperrun({workspace_->job(edited(kJob, edits), directory + ".textproto")}),
                           Seconds(120));
  }

  static std::vector<nlohmann::json> lines(const std::string& directory, const char* key) {
    return workspace_->metrics(directory, key);
  }

  static std::vector<double> losses(const std::string& directory) {
    std::vector<double> list;
    for (const nlohmann::json& line : lines(directory, "loss")) list.push_back(line.at("loss"));
    return list;
  }

  static Workspace* workspace_;
};
Workspace* Omni::workspace_ = nullptr;

TEST_F(Omni, WhoIsReadyWhenAndWhoIsWhereChangesNoNumber) {
  ASSERT_THAT(run("apart"), Succeeded());
  ASSERT_EQ(losses("apart").size(), 4U);
  EXPECT_THAT(run("in-order", {{"media { ", "media { order: \"static\" "}}), Succeeded());
  EXPECT_EQ(lines("in-order", "step"), lines("apart", "step"));
  EXPECT_THAT(run("together", kTogether), Succeeded());
  EXPECT_EQ(lines("together", "step"), lines("apart", "step"));
  std::vector<Edit> edits = kTogether;
  edits.push_back({"media { ", "media { order: \"static\" "});
  EXPECT_THAT(run("together-in-order", edits), Succeeded());
  EXPECT_EQ(lines("together-in-order", "step"), lines("apart", "step"));
}

// Encoders on one host, the text's stages on another (network namespaces: deploy/lab/netns.sh): fetches cross
// between them.
TEST_F(Omni, OnTwoHostsNumbersAreThoseOfOne) {
  const std::string netns = std::string(HYPERRUN_SOURCE_DIR) + "/deploy/lab/netns.sh";
  const Finished up = workspace_->run({netns, "up", "2"});
  if (up.status != 0) GTEST_SKIP() << up.err;
  std::ofstream(*workspace_ / "hosts") << "hr-host0 slots=3\nhr-host1 slots=2\n";
  Command command{netns, "run"};
  const Command words =
      hyperrun({workspace_->job(edited(kJob, {{"\"out\"", "\"hosts-run\""}}), "hosts.textproto"),
                "--hostfile", *workspace_ / "hosts"});
  command.insert(command.end(), words.begin(), words.end());
  const Finished two = workspace_->run(command, Seconds(120));
  workspace_->run({netns, "down"});
  ASSERT_THAT(two, Succeeded()) << two;
  ASSERT_THAT(run("one-host"), Succeeded());
  EXPECT_EQ(losses("hosts-run").size(), 4U);
  EXPECT_EQ(lines("hosts-run", "step"), lines("one-host", "step"));
}

// Programs write their parts beside the next step. One that finds no space costs the checkpoint alone.
TEST_F(Omni, SavesBesideTheStepsAndAFullDiskCostsACheckpoint) {
  ASSERT_THAT(run("unsaved"), Succeeded());
  const Finished full =
      run("full", {{"\"out\"",
                    "\"out\" checkpoint_every: 1 keep_last: 2 "
                    "chaos { fault { kind: \"full_disk\" device: 2 step: 3 saving: true } }"}});
  ASSERT_THAT(full, Succeeded()) << full;
  EXPECT_EQ(lines("full", "step"), lines("unsaved", "step"));
  EXPECT_THAT(full.err, HasSubstr("step-000003: not saved, the run goes on: no space is left")) << full;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(*workspace_ / "full/checkpoints"))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("step-000002", "step-000004"));
  for (const char* file : {"text.0/model.safetensors", "pictures/optimizer.safetensors"})
    EXPECT_EQ(content(*workspace_ / "full/checkpoints/step-000004" / file),
              content(*workspace_ / "unsaved/checkpoints/step-000004" / file))
        << file;
}

TEST_F(Omni, TheResolvedJobIsAJob) {
  ASSERT_THAT(run("resolved", {{"steps: 4", "steps: 1"}}), Succeeded());
  const Finished again = workspace_->run(hyperrun({"check", "resolved/job.textproto"}));
  EXPECT_THAT(again, Succeeded()) << again;
}

TEST_F(Omni, OneDeviceComesToTheSame) {
  ASSERT_THAT(run("parts"), Succeeded());
  ASSERT_THAT(run("one", {{"devices: 5", "devices: 1"},
                          {"does: \"encode\" devices: 2", "does: \"encode\" devices: 1"},
                          {"  parallel { mesh { name: \"dp\" size: 2 } presets: \"dp\" }\n", ""},
                          {"first_device: 2 devices: 1", "devices: 1"},
                          {"first_device: 3 devices: 2", "devices: 1"},
                          {"  parallel { mesh { name: \"pp\" size: 2 } pipeline { axis: \"pp\" } }\n", ""}}),
              Succeeded());
  EXPECT_THAT(losses("parts"), RelativelyNear(losses("one"), 1e-5));
}

TEST_F(Omni, LearnsWhatItSeesAndHears) {
  const Finished f =
      run("learns", {{"steps: 4", "steps: 80"}, {"evaluate: 6", "evaluate: 8"}, {"lr: 3e-3", "lr: 5e-3"}});
  ASSERT_THAT(f, Succeeded());
  const std::vector<nlohmann::json> asked = lines("learns", "encoder");
  ASSERT_EQ(asked.size(), 4U);  // both encoders, before and after
  EXPECT_EQ(asked[2].at("encoder"), "pictures");
  EXPECT_EQ(asked[2].at("texts"), 4);
  EXPECT_EQ(asked[2].at("held_back"), 8);
  EXPECT_GE(asked[2].at("correct"), 7) << f.out;
  EXPECT_EQ(asked[3].at("texts"), 2);
  EXPECT_GE(asked[3].at("correct"), 5) << f.out;
  for (const char* file : {"report.json", "loss.svg", "trace.pftrace", "manifest.json", "job.textproto",
                           "tokenizer.json", "checkpoints/step-000080/pictures/model.safetensors",
                           "checkpoints/step-000080/text.1/optimizer.safetensors"})
    EXPECT_TRUE(fs::exists(*workspace_ / "learns" / file)) << file;
  const Finished report = workspace_->run({HYPERRUN_BINARY, "report", "learns"});
  EXPECT_THAT(report, Succeeded());
  EXPECT_THAT(report.out, AllOf(HasSubstr("80 steps"), HasSubstr("pictures right of 8 held back")));
}

// In both orders of tasks: timing does not change the numbers.
TEST_F(Omni, AfterAKilledDeviceGoesOnAsIfNothingHadHappened) {
  for (const std::string order : {"dynamic", "static"}) {
    const std::string whole = order + "-whole", cut = order + "-cut", rest = order + "-rest";
    const std::string job = workspace_->job(
        edited(kJob, {{"steps: 4", "steps: 24"},
                      {"evaluate: 6", "evaluate: 6 evaluate_every: 5 order: \"" + order + "\""},
                      {"directory: \"out\"", "checkpoint_every: 5"}}),
        order + ".textproto");
    ASSERT_THAT(workspace_->run(hyperrun({job, "--run-dir", whole}), Seconds(120)), Succeeded());
    const auto run = workspace_->start(hyperrun({job, "--run-dir", cut, "--restarts", "0"}));
    ASSERT_TRUE(
        eventually([&] { return fs::exists(*workspace_ / (cut + "/checkpoints/step-000010")); }, Seconds(60)))
        << run->err();
    workspace_->kill_device(1);
    const Finished killed = run->wait(Seconds(20));
    EXPECT_EQ(killed.status, 8) << killed;
    EXPECT_THAT(killed.err, HasSubstr("start the job again with --resume"));
    ASSERT_FALSE(fs::exists(*workspace_ / (cut + "/checkpoints/step-000024"))) << "it was over too soon";
    EXPECT_THAT(workspace_->run(hyperrun({"check", job, "--resume", cut})).out,
                HasSubstr("resumed after step "));

    const Finished resumed =
        workspace_->run(hyperrun({job, "--resume", cut, "--run-dir", rest}), Seconds(120));
    ASSERT_THAT(resumed, Succeeded()) << resumed;
    const std::vector<nlohmann::json> all = lines(whole, "step"), last = lines(rest, "step");
    ASSERT_LT(last.size(), all.size());
    EXPECT_EQ(last, std::vector(all.end() - std::ssize(last), all.end()));
    expect_same_files(*workspace_ / (whole + "/checkpoints/step-000024"),
                      *workspace_ / (rest + "/checkpoints/step-000024"));
  }
}

TEST_F(Omni, GoesOnByItselfAfterALoss) {
  const auto job = [](const std::string& more, const std::string& name) {
    return workspace_->job(
        edited(kJob, {{"steps: 4", "steps: 8"}, {"directory: \"out\"", "checkpoint_every: 2 " + more}}),
        name);
  };
  const std::string whole = job("", "undisturbed.textproto"),
                    lost = job("chaos { fault { device: 2 step: 5 } }", "lost.textproto");
  ASSERT_THAT(workspace_->run(hyperrun({whole, "--run-dir", "undisturbed"}), Seconds(60)), Succeeded());
  const Finished f = workspace_->run(hyperrun({lost, "--run-dir", "lost"}), Seconds(60));
  ASSERT_THAT(f, Succeeded()) << f;
  EXPECT_THAT(f.err, HasSubstr("restart 1 of 3")) << f;
  expect_same_files(*workspace_ / "undisturbed/checkpoints/step-000008",
                    *workspace_ / "lost/checkpoints/step-000008");
}

TEST_F(Omni, GoesOnFromItsOwnCheckpointsOnly) {
  ASSERT_THAT(run("own", {{"steps: 4", "steps: 1"}}), Succeeded());
  const auto refused = [&](const std::vector<Edit>& edits, const std::string& checkpoint) {
    const std::string job = workspace_->job(edited(kJob, edits), "refused.textproto");
    const Finished f = workspace_->run(hyperrun({job, "--resume", checkpoint, "--run-dir", "never"}));
    EXPECT_EQ(workspace_->run(hyperrun({"check", job, "--resume", checkpoint})).status, f.status);
    EXPECT_FALSE(fs::exists(*workspace_ / "never"));
    return f.err;
  };
  EXPECT_THAT(refused({{"run { ", "run { seed: 2 "}}, "own"),
              HasSubstr("the run of the checkpoint has 1, the job 2"));
  EXPECT_THAT(refused({{"batch: 8", "batch: 16"}}, "own"),
              HasSubstr("the run of the checkpoint has 8, the job 16"));
  EXPECT_THAT(refused({{"steps: 4", "steps: 1"}}, "own"), HasSubstr("nothing is left to do"));
  EXPECT_THAT(refused({{"name: \"pictures\"", "name: \"images\""}, {"[\"pictures\"", "[\"images\""}}, "own"),
              AllOf(HasSubstr("bad-checkpoint"), HasSubstr("\"images\"")));
  EXPECT_THAT(refused({{"layers: 2", "layers: 4"}}, "own"), HasSubstr("step-000001/text.0: model.layers.1"));
  EXPECT_THAT(refused({}, "own/checkpoints/step-000001/text.0"),
              HasSubstr("it is no checkpoint of a job with encoders"));
}

TEST_F(Omni, IsCheckedAndSimulatedWithoutMpi) {
  const std::string job = workspace_->job(kJob, "checked.textproto");
  const Finished check = workspace_->run({HYPERRUN_BINARY, "check", job});
  EXPECT_THAT(check, Succeeded());
  EXPECT_THAT(check.out, AllOf(HasSubstr("text.1"), HasSubstr("56 samples to learn from, 14 held back")));
  const Finished sim = workspace_->run({HYPERRUN_BINARY, "sim", job, "--json"});
  ASSERT_THAT(sim, Succeeded());
  const auto json = nlohmann::json::parse(sim.out);
  EXPECT_EQ(json.at("orders").size(), 2U);
  for (const auto& order : json.at("orders")) {
    EXPECT_GT(order.at("bubble"), 0);
    EXPECT_LT(order.at("bubble"), 1);
  }
}

TEST_F(Omni, ItsSimulatedStepHasARange) {
  const std::string job = workspace_->job(
      edited(kJob, {{"hbm: \"16 MiB\"", "hbm: \"16 MiB\" profile: \"h100\""}, {"steps: 4 ", ""}}),
      "ranged.textproto");
  const Finished sim = workspace_->run({HYPERRUN_BINARY, "sim", job, "--json"});
  ASSERT_THAT(sim, Succeeded()) << sim;
  const auto json = nlohmann::json::parse(sim.out);
  const double step = json.at("range").at("step_ns").get<double>();
  EXPECT_NEAR(step, 1e9 * json.at("orders").at(1).at("step_seconds").get<double>(), 1);
  EXPECT_LT(json.at("range").at("fastest_ns"), step);
  EXPECT_GT(json.at("range").at("slowest_ns"), step);
}

struct Wrong {
  Edit edit;
  const char *code, *cause;
};

TEST_F(Omni, WhatCannotRunFailsBeforeItStarts) {
  for (const Wrong& w : std::initializer_list<Wrong>{
           {{"tokens: 4 items: 1", "tokens: 5 items: 1"}, "bad-value", "4 patches"},
           {{"inputs: [\"pictures\", \"sounds\"]", "inputs: \"sounds\""}, "bad-value", "takes \"sounds\""},
           {{"media { most: 2 evaluate: 6 }", ""}, "missing-field", "nothing says"},
           {{"most: 2", "least: 3 most: 2"}, "bad-value", "is more than most 2"},
           {{"sequence: 48", "sequence: 12"}, "bad-value", "positions"},
           {{"manifest.jsonl", "nothing.jsonl"}, "missing-file", "there is no"},
           {{"hbm: \"16 MiB\"", "hbm: \"100 KiB\""}, "does-not-fit", "program pictures"},
           {{"hidden: 32 heads: 2 }\n  parallel", "hidden: 30 heads: 4 }\n  parallel"},
            "bad-value",
            "does not divide"},
           {{"vocab: 257", "vocab: 257 tied_head: true"}, "bad-value", "tied_head"},
           {{"does: \"train\" first_device: 3", "does: \"train\" first_device: 4"},
            "bad-value",
            "has devices 4 to 5"}}) {
    const Finished f = run("wrong", {w.edit});
    EXPECT_NE(f.status, 0) << w.cause;
    EXPECT_THAT(f.err, AllOf(HasSubstr(std::string("error[") + w.code + "]"), HasSubstr(w.cause)));
    EXPECT_FALSE(fs::exists(*workspace_ / "wrong"));
  }
}

}  // namespace
}  // namespace hyperrun::testing
