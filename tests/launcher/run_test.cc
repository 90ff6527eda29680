// Successful runs, end to end: the ways to start one, its output and its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "proto/trace.pb.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/report/report.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// One run that several tests examine.
class GoodRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = std::make_unique<Workspace>();
    job_ = workspace_->job(
        edited(kJob, {{"directory: \"out\"", R"(directory: "out" checkpoint_every: 4 trace_first: 1
      trace_steps: 2 generate { prompt: "The harbour" tokens: 12 temperature: 0.8 top_k: 20 })"}}));
    first_ = workspace_->run(hyperrun({job_}));
    ASSERT_THAT(first_, Succeeded());
  }
  static void TearDownTestSuite() { workspace_.reset(); }

  void TearDown() override { EXPECT_TRUE(workspace_->nothing_left()); }

  static fs::path out() { return *workspace_ / "out"; }

  // Runs the command with results in `directory`, and expects the losses of the first run to the bit.
  static Finished expect_same(Command command, const std::string& directory) {
    command.insert(command.end(), {"--run-dir", directory});
    Finished f = workspace_->run(std::move(command));
    EXPECT_THAT(f, Succeeded());
    EXPECT_EQ(losses(*workspace_ / directory), losses(out()));
    return f;
  }

  static inline std::unique_ptr<Workspace> workspace_;
  static inline std::string job_;
  static inline Finished first_;
};

TEST_F(GoodRun, TheLossFalls) {
  const std::vector<double> loss = losses(out());
  ASSERT_EQ(loss.size(), 6U);
  EXPECT_NEAR(loss.front(), std::log(320.0), 0.1);  // untrained: every token of the vocabulary is as likely
  EXPECT_LT(loss.back(), loss.front() - 0.5);
}

TEST_F(GoodRun, SaysWhatItDoesOnceAndInPlainLines) {
  EXPECT_EQ(first_.err, "");
  EXPECT_EQ(occurrences(first_.out, "parameters on 2 devices (dp 2)"), 1) << first_.out;
  EXPECT_EQ(occurrences(first_.out, "step 6/6"), 1) << first_.out;
  EXPECT_EQ(occurrences(first_.out, "run directory: " + out().string()), 1) << first_.out;
  EXPECT_EQ(first_.out.find_first_of("\r\x1b"), std::string::npos)
      << "no control characters outside a terminal";
}

TEST_F(GoodRun, UnderAForeignMpirunItIsTheSame) {
  const Finished f = expect_same(mpirun(2, {job_}), "foreign");
  EXPECT_EQ(f.err, "");
  EXPECT_EQ(occurrences(f.out, "parameters on 2 devices (dp 2)"), 1) << f;
  EXPECT_EQ(occurrences(f.out, "step 6/6"), 1) << f;
  EXPECT_EQ(content(*workspace_ / "foreign/generated.txt"), content(out() / "generated.txt"));
}

TEST_F(GoodRun, ABinaryJobIsTheSame) {
  put_file(*workspace_ / "job.pb", to_binary(read_job(job_)));
  expect_same(hyperrun({*workspace_ / "job.pb"}), "binary");
}

TEST_F(GoodRun, StreamsInThreadsOfTheirOwnAreTheSame) {
  const std::string text = content(job_);
  expect_same(hyperrun({workspace_->job(edited(text, {{"trace_first", "streams: PER_STREAM trace_first"}}),
                                        "threads.textproto")}),
              "threads");
  expect_same(hyperrun({workspace_->job(edited(text, {{"trace_first", "streams: ONE trace_first"}}),
                                        "one.textproto")}),
              "one");
}

TEST_F(GoodRun, TheResolvedJobRunsAgainAndLeavesTheFirstRunAlone) {
  const std::string before = content(out() / "metrics.jsonl");
  const Finished f = workspace_->run(hyperrun({out() / "job.textproto"}));
  EXPECT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, HasSubstr("out-2"));
  EXPECT_EQ(losses(*workspace_ / "out-2"), losses(out()));
  EXPECT_EQ(content(out() / "metrics.jsonl"), before);
}

TEST_F(GoodRun, QuietHasNoProgressLines) {
  const Finished f = expect_same(hyperrun({job_, "--quiet"}), "quiet");
  EXPECT_THAT(f.out, Not(HasSubstr("step 6/6")));
}

TEST_F(GoodRun, NobodyNeedsToListen) {
  expect_same({"sh", "-c", "\"$@\" | head -n 1", "sh", HYPERRUN_BINARY, job_}, "piped");
  EXPECT_TRUE(fs::exists(*workspace_ / "piped/report.json"));
}

TEST_F(GoodRun, FourDevicesInTwoDimensionsComeToTheSameLosses) {
  const std::string job = workspace_->job(
      edited(
          content(job_),
          {{"devices: 2", "devices: 4"},
           {R"(mesh { name: "dp" size: 2 } presets: "dp")",
            R"(mesh { name: "dp" size: 2 } mesh { name: "tp" size: 2 } presets: ["dp", "tp", "sp", "zero1"])"}}),
      "four.textproto");
  EXPECT_THAT(workspace_->run(hyperrun({job, "--run-dir", "four"})), Succeeded());
  EXPECT_THAT(losses(*workspace_ / "four"), RelativelyNear(losses(out()), 1e-4));
}

// The table of docs/run_directory.md names files in its first column.
std::vector<std::string> documented_files() {
  std::vector<std::string> names;
  std::ifstream in(fs::path(HYPERRUN_SOURCE_DIR) / "docs/run_directory.md");
  for (std::string line; std::getline(in, line) && !line.starts_with("## ");)
    if (line.starts_with("| `")) names.push_back(line.substr(3, line.find('`', 3) - 3));
  return names;
}

TEST_F(GoodRun, EveryDocumentedFileIsThere) {
  const std::vector<std::string> documented = documented_files(), present = files_below(out());
  EXPECT_THAT(documented, IsSupersetOf({"job.textproto", "manifest.json", "metrics.jsonl", "report.json"}));
  for (const std::string& name : documented) EXPECT_THAT(present, Contains(StartsWith(name)));
  for (const std::string& name : present)
    EXPECT_TRUE(name.starts_with("checkpoints/") ||
                std::count(documented.begin(), documented.end(), name) == 1)
        << name << " is not in docs/run_directory.md";
}

TEST_F(GoodRun, ManifestSaysHowItEnded) {
  const auto manifest = nlohmann::json::parse(content(out() / "manifest.json"));
  EXPECT_EQ(manifest.at("state"), "finished");
  EXPECT_EQ(manifest.at("exit_status"), 0);
  EXPECT_EQ(manifest.at("hosts").size(), 2U);
  EXPECT_THAT(manifest.at("libraries").at("mpi").get<std::string>(),
              AllOf(HasSubstr("Open MPI"), Not(HasSubstr(std::string(1, '\0')))));
}

std::vector<CollectiveUse> without_times(std::vector<CollectiveUse> uses) {
  for (CollectiveUse& use : uses) use.time = use.exposed = Nanos(0);
  return uses;
}

TEST_F(GoodRun, ExecutedIsPlannedIsSimulatedToTheByte) {
  const RunReport report = read_report(out() / "report.json");
  ASSERT_EQ(report.devices.size(), 2U);
  EXPECT_EQ(report.steps.size(), 6U);
  EXPECT_TRUE(totals(report).off_plan.empty());

  const Finished sim = workspace_->run(hyperrun({"sim", job_, "--json"}));
  ASSERT_THAT(sim, Succeeded());
  const RunReport simulated = report_from_json(sim.out, "sim");
  for (const DeviceReport& executed : report.devices) {
    const DeviceReport& other = simulated.devices.at(static_cast<std::size_t>(executed.device));
    EXPECT_EQ(executed.tiers, other.tiers);
    EXPECT_GT(executed.tiers.at(0).executed_peak.value, 0);
    EXPECT_EQ(without_times(executed.collectives), without_times(other.collectives));
    EXPECT_FALSE(executed.collectives.empty());
  }
}

TEST_F(GoodRun, ReportIsPrintedWithoutMpi) {
  const Finished f = workspace_->run(hyperrun({"report", out()}));
  EXPECT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, AllOf(HasSubstr("all-reduce"), HasSubstr("weights"), HasSubstr("6 steps")));
}

TEST_F(GoodRun, TraceHasATrackForEachDeviceAndStream) {
  proto::trace::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(content(out() / "trace.pftrace")));
  std::map<std::uint64_t, std::string> processes;           // track to name
  std::map<std::string, std::vector<std::string>> streams;  // streams of a process
  std::set<std::uint64_t> used;
  for (const auto& packet : trace.packet()) {
    if (packet.has_track_event()) used.insert(packet.track_event().track_uuid());
    if (!packet.has_track_descriptor()) continue;
    const auto& track = packet.track_descriptor();
    if (track.has_process()) processes[track.uuid()] = track.process().process_name();
    if (track.has_parent_uuid()) streams[processes[track.parent_uuid()]].push_back(track.name());
  }
  for (const char* device : {"device 0", "device 1"}) {
    const auto found = std::find_if(streams.begin(), streams.end(),
                                    [&](const auto& s) { return s.first.starts_with(device); });
    ASSERT_NE(found, streams.end()) << device;
    EXPECT_THAT(found->second, IsSupersetOf({"cube", "vector", "comm", "dma-in", "dma-out", "HBM bytes"}));
  }
  EXPECT_GT(used.size(), 6U);
}

// The counter in the traced steps: from the state up to the planned peak at most, and back to the state.
TEST_F(GoodRun, TraceCountsHbmBetweenStateAndPeak) {
  proto::trace::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(content(out() / "trace.pftrace")));
  const TierUse hbm = read_report(out() / "report.json").devices.at(0).tiers.at(0);
  std::int64_t weights = 0;
  for (const CategoryUse& use : hbm.categories)
    if (use.category == "weights") weights = use.planned.value;
  ASSERT_GT(weights, 0);
  std::map<std::uint64_t, std::vector<std::int64_t>> counters;
  for (const auto& p : trace.packet())
    if (p.has_track_event() && p.track_event().type() == proto::trace::TrackEvent::TYPE_COUNTER)
      counters[p.track_event().track_uuid()].push_back(p.track_event().counter_value());
  ASSERT_EQ(counters.size(), 2U) << "one a device";
  for (const auto& [track, values] : counters) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    EXPECT_GT(*least, weights) << "and the moments of the optimizer";
    EXPECT_GT(*most, *least);
    EXPECT_LE(*most, hbm.planned_peak.value);
    EXPECT_EQ(values.back(), *least) << "only the state outlives a step";
  }
}

// The clock of the steps is that of their ends, so every time is the difference of two of these.
TEST_F(GoodRun, MetricsAgreeWithThemselves) {
  const std::vector<StepMetrics> metrics = read_metrics(out() / "metrics.jsonl");
  ASSERT_EQ(metrics.size(), 6U);
  for (std::size_t s = 0; s < metrics.size(); ++s) {
    const StepMetrics& m = metrics[s];
    EXPECT_EQ(m.tokens, 8 * 32);
    EXPECT_DOUBLE_EQ(m.tokens_per_second, m.tokens / (static_cast<double>(m.step_time.value) * 1e-9));
    if (s > 0) {
      EXPECT_EQ(m.step_time, m.time - metrics[s - 1].time);
    }
  }
}

TEST_F(GoodRun, CommunicationIsExposedAndWithinTheStep) {
  for (const StepMetrics& m : read_metrics(out() / "metrics.jsonl")) {
    EXPECT_GT(m.exposed_communication, 0);
    EXPECT_LE(m.exposed_communication, 1);
  }
  for (const DeviceReport& d : read_report(out() / "report.json").devices) {
    EXPECT_GT(d.exposed_communication, Nanos(0));
    EXPECT_LE(d.exposed_communication, d.time);
  }
}

TEST_F(GoodRun, CheckpointIsReadableByOthers) {
  const fs::path checkpoint = out() / "checkpoints/step-000006";
  EXPECT_TRUE(fs::exists(out() / "checkpoints/step-000004"));
  const SafetensorsReader weights(checkpoint / "model.safetensors");
  // tokens x hidden, as in Hugging Face's Llama: rows are the layer's outputs.
  EXPECT_NE(weights.find("model.embed_tokens.weight"), nullptr);
  EXPECT_NO_THROW(weights.get("model.embed_tokens.weight", std::vector<std::int64_t>{320, 64}));
  EXPECT_NO_THROW(weights.get("model.layers.1.self_attn.k_proj.weight", std::vector<std::int64_t>{32, 64}));
  EXPECT_NO_THROW(weights.get("model.layers.0.mlp.down_proj.weight", std::vector<std::int64_t>{64, 192}));
  EXPECT_NO_THROW(weights.get("lm_head.weight", std::vector<std::int64_t>{320, 64}));
  EXPECT_EQ(nlohmann::json::parse(content(checkpoint / "config.json")).at("model_type"), "llama");
  EXPECT_EQ(nlohmann::json::parse(content(checkpoint / "tokenizer.json")).at("model").at("type"), "BPE");
  EXPECT_TRUE(fs::exists(checkpoint / "optimizer.safetensors"));
}

TEST_F(GoodRun, GeneratedTextGoesOnFromThePrompt) {
  const std::string text = content(out() / "generated.txt");
  EXPECT_TRUE(text.starts_with("The harbour")) << text;
  EXPECT_GT(text.size(), std::string("The harbour\n").size());
  EXPECT_THAT(first_.out, HasSubstr(text));
}

// A generation afterwards, from the checkpoint: with the job's own settings the same text, also on another
// number of devices.
TEST_F(GoodRun, GenerateGoesOnAsTheRunDid) {
  const Finished again = workspace_->run(hyperrun({"generate", out().string()}));
  EXPECT_THAT(again, Succeeded());
  EXPECT_EQ(again.out, content(out() / "generated.txt"));
  EXPECT_THAT(again.err, HasSubstr("12 tokens in"));

  const std::string checkpoint = (out() / "checkpoints/step-000006").string();
  const Finished alone = workspace_->run(
      hyperrun({"generate", checkpoint, "--devices", "2", "--prompt", "The harbour", "--prompt", "A whale",
                "--tokens", "12", "--temperature", "0.8", "--top-k", "20", "--seed", "1", "--json"}));
  EXPECT_THAT(alone, Succeeded());
  const auto first = nlohmann::json::parse(alone.out.substr(0, alone.out.find('\n')));
  EXPECT_EQ("The harbour" + first.at("text").get<std::string>() + "\n", content(out() / "generated.txt"));
}

// Several ends of text, as Llama 3 has: the text stops before the first one drawn.
TEST_F(GoodRun, GenerateEndsAtAnyEndOfTheCheckpoint) {
  const fs::path model = *workspace_ / "several_ends";
  fs::copy(out() / "checkpoints/step-000006", model, fs::copy_options::recursive);
  const auto generate = [&] {
    const Finished f = workspace_->run(hyperrun(
        {"generate", model.string(), "--prompt", "The harbour", "--tokens", "12", "--seed", "1", "--json"}));
    EXPECT_THAT(f, Succeeded());
    return nlohmann::json::parse(f.out);
  };
  const auto whole = generate();
  const auto tokens = whole.at("tokens").get<std::vector<std::int32_t>>();
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[5]);

  auto config = nlohmann::json::parse(content(model / "config.json"));
  std::int32_t not_drawn = 0;
  while (std::ranges::count(tokens, not_drawn) > 0) ++not_drawn;
  config["eos_token_id"] = {not_drawn, tokens[5]};
  std::ofstream(model / "config.json") << config.dump();
  const auto ended = generate();
  EXPECT_EQ(ended.at("tokens"), (std::vector<std::int32_t>(tokens.begin(), first + 1)));
  const auto text = ended.at("text").get<std::string>();
  EXPECT_TRUE(whole.at("text").get<std::string>().starts_with(text)) << text;
  config["eos_token_id"] = {not_drawn};  // the same but for its last token, which is printed
  std::ofstream(model / "config.json") << config.dump();
  EXPECT_EQ(generate(), whole);
}

// The planned memory is then that of its passes, and they use it.
TEST(Run, AGenerationMayNeedMoreThanAStep) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(kJob, {{"run { directory: \"out\" restarts: 0 }",
                                   "inference { context: 16384 }\n"
                                   "run { directory: \"out\" generate { prompt: \"The\" tokens: 3 } }"}}));
  const Finished f = workspace.run(hyperrun({job}));
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, Not(HasSubstr("not as planned")));
  EXPECT_THAT(f.out, Not(HasSubstr("warning")));
  const RunReport report = read_report(workspace / "out/report.json");
  for (const DeviceReport& device : report.devices) {
    const TierUse& hbm = device.tiers.front();
    EXPECT_EQ(hbm.executed_peak, hbm.planned_peak);
    const auto cache = std::ranges::find(hbm.categories, "cache", &CategoryUse::category);
    ASSERT_NE(cache, hbm.categories.end());
    EXPECT_EQ(cache->executed, cache->planned);
  }
}

TEST_F(GoodRun, GenerateWritesUtf8WhateverThePromptIs) {
  const std::string prompt = "caf\xff";
  for (const bool json : {false, true}) {
    std::vector<std::string> words{"generate", out().string(), "--prompt", prompt, "--tokens", "2"};
    if (json) words.push_back("--json");
    const Finished f = workspace_->run(hyperrun(words));
    EXPECT_THAT(f, Succeeded());
    EXPECT_THAT(f.out, HasSubstr("caf\uFFFD"));
    EXPECT_THAT(f.out, Not(HasSubstr("\xff")));
  }
}

TEST_F(GoodRun, GenerateWantsWeightsAndPromptsThatFit) {
  fs::create_directories(*workspace_ / "empty");
  const Finished nothing = workspace_->run(hyperrun({"generate", (*workspace_ / "empty").string()}));
  EXPECT_EQ(nothing.status, static_cast<int>(exit_code(Code::kMissingFile)));
  const Finished long_one =
      workspace_->run(hyperrun({"generate", out().string(), "--prompt", "The harbour", "--tokens", "4000"}));
  EXPECT_EQ(long_one.status, static_cast<int>(exit_code(Code::kBadValue)));
  EXPECT_THAT(long_one.err, HasSubstr("inference.context"));
}

}  // namespace
}  // namespace hyperrun::testing
