// The order of tasks of a run that learns from rewards, on fake devices that only remember the version of
// their weights. The log probability of every token is replaced by that version. So each training step shows
// how stale its tokens are, independently of the driver.
#include "runtime/run/reinforcement_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "runtime/compose/programs.h"
#include "runtime/device/output_arrays.h"
#include "runtime/device/trainer_state.h"
#include "runtime/inference/requests_io.h"
#include "runtime/inference/samples_io.h"
#include "runtime/rank/protocol.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/stats_io.h"
#include "runtime/tasks/virtual_devices.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

using tasks::Invocation;
using tasks::InvocationDone;

constexpr int kSteps = 12, kBatch = 8;
constexpr std::int32_t kEvaluations = 1 << 30;  // the first id of completions of evaluations

Job job_of(int staleness, const std::string& more = "") {
  return parse_job(R"(
supernode { devices: 2 hbm: "32 MiB" }
model { layers: 1 hidden: 32 heads: 2 vocab: 258 sequence: 32 tied_head: true }
data { tasks: "none.jsonl" }
training { steps: 12 batch: 8 lr: 1e-3 policy { clip: 0.2 } }
programs { name: "actor" does: "generate" devices: 1 weights: "learner" inference { slots: 4 page: 4 } }
programs { name: "judge" does: "reward" inputs: "actor" }
programs { name: "learner" does: "train" first_device: 1 devices: 1 inputs: ["actor", "judge"] }
reinforcement { samples: 2 tokens: 24 staleness: )" +
                       std::to_string(staleness) + more + "}",
                   "job.textproto", JobUse::kOfPrograms)
      .job;
}

// The length of a completion: most are short, a few are long.
int length_of(std::int32_t id) {
  std::minstd_rand random(static_cast<unsigned>(id) * 7919U + 1);
  random.discard(3);
  return random() % 4 == 0 ? 20 : 1 + static_cast<int>(random() % 4);
}

// Fake devices. The duration of each task is random, from a seed.
class Devices : public tasks::VirtualWork {
 public:
  Devices(const ProgramSessions& programs, const Tokenizer& tokenizer, unsigned seed, int first_step)
      : programs_(programs), end_(tokenizer.end_of_text()), random_(seed), learning_(first_step) {}

  void run(ReinforcementDriver& driver) {
    tasks::VirtualDevices devices(2);
    tasks::drive(driver, devices, *this, 2);
  }

  std::map<std::int64_t, std::set<int>> learned;  // versions of the weights of a step's tokens, by step
  std::vector<std::set<int>> evaluated;           // versions of the weights of an evaluation's tokens
  std::vector<std::int32_t> admitted;             // completions in the order of their first pass
  std::map<std::int64_t, std::string> states;     // contents of programs_state.json, by step
  std::map<std::int64_t, int> learned_at_end;     // number of steps done when a checkpoint ends, by its step
  std::int64_t lost_part = -1;                    // the step of a checkpoint that a part of cannot be written

 private:
  Nanos lasts(const Invocation&) override { return Nanos(1 + random_() % 100); }

  std::vector<InvocationDone> done(const Invocation& invocation, Nanos, Nanos) override {
    const auto session = static_cast<std::size_t>(invocation.program / kProgramsOfASession);
    return {programs_.groups[session].size(), execute(invocation)};
  }

  InvocationDone execute(const Invocation& invocation) {
    InvocationDone done{invocation.id, {}, to_bytes(InvocationStats{}, 0, false)};
    const auto session = static_cast<std::size_t>(invocation.program / kProgramsOfASession);
    const auto place = static_cast<std::size_t>(invocation.program % kProgramsOfASession);
    if (place == static_cast<std::size_t>(kEndCheckpointProgram)) {
      states[invocation.step] = invocation.data;
      learned_at_end[invocation.step] = learning_;
    }
    if (place == static_cast<std::size_t>(kAwaitPartProgram) && invocation.step == lost_part)
      done.data = "no space is left";
    if (place >= static_cast<std::size_t>(kSaveProgram)) return done;
    if (session == programs_.to_generate) generating_ = learning_;
    if (session == programs_.generates) done.data = draw(place, invocation);
    if (session == programs_.trains && !invocation.data.empty()) {
      learn(invocation);
      done.outputs = {{"loss", 1}, {"grad_norm", 1}, {"kl", 0}, {"clipped", 0}};
    }
    return done;
  }

  std::string draw(std::size_t program, const Invocation& invocation) {
    const Plan& plan = programs_.sessions[programs_.generates].plan;
    const Requests requests = requests_from_bytes(invocation.data);
    std::vector<std::int32_t> tokens;
    for (std::size_t row = 0; row < requests.rows.size(); row += static_cast<std::size_t>(requests.width))
      tokens.push_back(grow(requests.rows.data() + row, plan.roles[0].programs[program].name == "prefill"));
    const std::vector<float> logp(tokens.size(), static_cast<float>(-generating_));
    const auto part = [](const char* name, const auto& values) {
      const auto bytes = std::as_bytes(std::span(values));
      return OutputPart{name, {bytes.begin(), bytes.end()}};
    };
    return to_bytes(std::vector{part("token", tokens), part("logp", logp)});
  }

  // The next token of a completion. Every prompt fits into one prefill pass here.
  std::int32_t grow(const std::int32_t* row, bool prefill) {
    const std::int32_t id = row[kRequestId];
    if (row[kRequestCount] == 0) return 0;
    if (prefill) {
      if (id >= kEvaluations) evaluate(id);
      if (id < kEvaluations) admitted.push_back(id);
      lengths_[id] = 0;
    }
    if (id >= kEvaluations) evaluated.back().insert(generating_);
    return ++lengths_[id] == length_of(id) ? end_ : 7;
  }

  // Begins a new evaluation when an id comes again: all evaluations have the same completions.
  void evaluate(std::int32_t id) {
    const bool again = !evaluating_.insert(id).second;
    if (again) evaluating_ = {id};
    if (again || evaluated.empty()) evaluated.emplace_back();
  }

  void learn(const Invocation& invocation) {
    const Samples samples = samples_from_bytes(invocation.data);
    EXPECT_EQ(invocation.step, learning_);
    for (std::size_t i = 0; i < samples.targets.size(); ++i)
      if (samples.targets[i] >= 0) learned[learning_].insert(static_cast<int>(-samples.behaviour[i]));
    ++learning_;
  }

  const ProgramSessions& programs_;
  std::int32_t end_;
  std::minstd_rand random_;
  std::map<std::int32_t, int> lengths_;
  std::set<std::int32_t> evaluating_;
  int learning_ = 0, generating_ = -1;  // versions of the learner's and of the generating weights
};

// A whole run on fake devices, and its results.
class FakeRun {
 public:
  FakeRun(const Job& job, unsigned seed, const std::optional<ProgramsState>& state = {},
          std::int64_t lost_part = -1)
      : programs_(sessions_of(job, compile_programs(job))),
        devices(programs_, tokenizer_, seed, state ? static_cast<int>(state->next_step) : 0) {
    devices.lost_part = lost_part;
    TaskSplit tasks;
    for (char c = 'a'; c <= 'p'; ++c) tasks.train.push_back({std::string(1, c), "1"});
    if (job.reinforcement.held_back > 0) tasks.held_back.assign(tasks.train.begin(), tasks.train.begin() + 5);
    const RunDirectory directory = RunDirectory::create(tmp_ / "run");
    ReinforcementRecorder recorder(
        {}, {.directory = &directory, .trace = directory.file(kTraceFile), .quiet = true});
    ReinforcementDriver driver(job, programs_, tasks, tokenizer_, recorder, state);
    devices.run(driver);
    recorder.finish();
    report = recorder.report();
    std::ifstream file(tmp_ / "run/metrics.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  }

 private:
  TemporaryDirectory tmp_;
  Tokenizer tokenizer_ = Tokenizer::train("abc", Tokenizer::kMinVocab);
  ProgramSessions programs_;

 public:
  Devices devices;
  ReinforcementReport report;
  std::vector<nlohmann::json> lines;  // the lines of metrics.jsonl
};

TEST(ReinforcementDriver, InOrderAllOfABatchIsDrawnWithTheWeightsThatLearnFromIt) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    const FakeRun run(job_of(0), seed);
    ASSERT_EQ(run.devices.learned.size(), kSteps);
    for (const auto& [step, versions] : run.devices.learned)
      EXPECT_EQ(versions, std::set{static_cast<int>(step)});
  }
}

TEST(ReinforcementDriver, NoTokenIsDrawnWithOlderWeightsThanAllowed) {
  std::size_t mixed = 0;
  for (const int staleness : {1, 2, 5})
    for (unsigned seed = 0; seed < 8; ++seed) {
      const FakeRun run(job_of(staleness, " held_back: 0"), seed);
      ASSERT_EQ(run.devices.learned.size(), kSteps);
      for (const auto& line : run.lines) {
        const auto step = line["step"].get<int>() - 1;
        const std::set<int>& versions = run.devices.learned.at(step);
        EXPECT_LE(*versions.rbegin(), step);
        EXPECT_EQ(line["staleness"], step - *versions.begin());
        EXPECT_LE(line["staleness"], staleness) << "step " << step << ", seed " << seed;
        mixed += versions.size() > 1 ? 1 : 0;
      }
    }
  EXPECT_GT(mixed, 0U) << "weights come while completions grow";
}

TEST(ReinforcementDriver, SlotsThatABatchLeavesAreTheNextOnes) {
  const auto filled = [](int staleness) { return FakeRun(job_of(staleness), 1).report.filled_slots; };
  const double in_order = filled(0), behind = filled(2);
  EXPECT_LT(in_order, 0.8) << "a batch ends with its longest alone";
  EXPECT_GT(behind, in_order + 0.2);
}

TEST(ReinforcementDriver, NoPromptOvertakesThoseOfABatchBefore) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const FakeRun run(job_of(3), seed);
    EXPECT_EQ(std::ssize(run.devices.admitted), kSteps * kBatch);
    const auto batch = [](std::int32_t id) { return id / kBatch; };
    EXPECT_TRUE(std::ranges::is_sorted(run.devices.admitted, {}, batch)) << "seed " << seed;
  }
}

TEST(ReinforcementDriver, AnEvaluationIsDrawnWithOneVersionOfWeights) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const FakeRun run(job_of(2, " evaluate_every: 3"), seed);
    std::vector<std::set<int>> told;
    for (const auto& line : run.lines)
      if (line.contains("held_back_reward")) told.push_back({line["step"].get<int>()});
    EXPECT_EQ(run.devices.evaluated, told);
    EXPECT_EQ(told.front(), std::set{0});
    EXPECT_EQ(told.back(), std::set{kSteps});
  }
}

std::optional<ProgramsState> state_of(const std::string& text) {
  const TemporaryDirectory folder;
  std::ofstream(folder / kProgramsStateFile) << text;
  return read_programs_state(folder / ".");
}

// Expects a run that goes on from `state` to learn from its queue as the whole run did, and to draw the rest.
void expect_to_go_on(const Job& job, const FakeRun& whole, const ProgramsState& state, unsigned seed) {
  const FakeRun rest(job, seed, state);
  const std::int64_t first = state.next_step, queued = std::ssize(state.queued);
  ASSERT_EQ(std::ssize(rest.devices.learned), kSteps - first);
  for (const QueuedBatch& batch : state.queued)
    EXPECT_EQ(rest.devices.learned.at(batch.step), whole.devices.learned.at(batch.step)) << batch.step;
  std::vector<std::int32_t> drawn = rest.devices.admitted;
  std::ranges::sort(drawn);
  ASSERT_EQ(std::ssize(drawn), (kSteps - first - queued) * kBatch);
  if (!drawn.empty()) {
    EXPECT_EQ(drawn.front(), (first + queued) * kBatch);
    EXPECT_EQ(drawn.back(), kSteps * kBatch - 1);
  }
  for (const auto& line : rest.lines) EXPECT_LE(line["staleness"], job.reinforcement.staleness);
}

TEST(ReinforcementDriver, GoesOnFromACheckpointWithWhatIsInItsQueue) {
  std::size_t queued = 0;
  for (const int staleness : {0, 2, 5})
    for (unsigned seed = 0; seed < 3; ++seed) {
      Job job = job_of(staleness, " held_back: 0");
      job.run.checkpoint_every = 5;
      const FakeRun whole(job, seed);
      ASSERT_EQ(whole.devices.states.size(), 3U);  // after 5, 10 and 12 steps
      for (const auto& [step, text] : whole.devices.states) {
        const std::optional<ProgramsState> state = state_of(text);
        EXPECT_EQ(to_json(*state), text);
        EXPECT_EQ(state->next_step, step);
        queued += state->queued.size();
        if (step < kSteps) expect_to_go_on(job, whole, *state, seed + 100);
      }
    }
  EXPECT_GT(queued, 0U);
}

// A checkpoint is written beside the step behind it. The last one ends before the run does.
TEST(ReinforcementDriver, ACheckpointEndsBehindTheNextStep) {
  Job job = job_of(1, " held_back: 0");
  job.run.checkpoint_every = 5;
  const FakeRun run(job, 3, {}, 5);
  EXPECT_THAT(run.devices.learned_at_end,
              ::testing::UnorderedElementsAre(std::pair(5, 6), std::pair(10, 11), std::pair(12, 12)));
  EXPECT_EQ(run.devices.states.at(5), "") << "a part is missing, so nothing stays";
  EXPECT_NE(run.devices.states.at(10), "");
  EXPECT_EQ(std::ssize(run.devices.learned), kSteps);
}

// Every step trains on 8 completions; the report counts all of their tokens.
TEST(ReinforcementDriver, WhatWasLearnedFromIsCounted) {
  const FakeRun run(job_of(1), 3);
  std::int64_t tokens = 0;
  for (std::int32_t id = 0; id < kSteps * kBatch; ++id) tokens += length_of(id);
  EXPECT_EQ(run.report.learned_completions, kSteps * kBatch);
  EXPECT_EQ(run.report.learned_tokens, tokens);
  EXPECT_GT(run.report.decode_passes, 0);
}

}  // namespace
}  // namespace hyperrun::testing
