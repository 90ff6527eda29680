// Mixtures of experts: kernels against the definition in double, and every way to spread experts against one
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/differentiate.h"
#include "runtime/ir/row_counts.h"
#include "runtime/model/graph/model.h"
#include "tests/support/in_process_run.h"
#include "tests/support/interpreter.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"

namespace hyperrun::testing {
namespace {

struct Kind {
  const char* name;
  ExpertsSpec spec;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind kMixtral{"mixtral", {.count = 8, .choices = 2, .ffn = 32}};
const Kind kSwitch{"switch", {.count = 4, .choices = 1, .ffn = 48, .normalize = false, .aux_loss = 0.1}};
const Kind kDeepSeek{"deepseek",
                     {.count = 8,
                      .choices = 3,
                      .ffn = 24,
                      .shared = 1,
                      .dense_layers = 1,
                      .scoring = "sigmoid",
                      .scale = 2.5,
                      .aux_loss = 0.01,
                      .bias_rate = 0.01}};

const Kind kGroups{
    "groups", {.count = 8, .choices = 3, .ffn = 24, .normalize = false, .groups = 4, .group_choices = 2}};
const Kind kCapacity{"capacity",
                     {.count = 8,
                      .choices = 2,
                      .ffn = 32,
                      .scoring = "sigmoid",
                      .scale = 1.5,
                      .aux_loss = 0.01,
                      .capacity = {.factor = 0.75}}};
const Kind kCapacityOfGroups{
    "capacity_of_groups",
    {.count = 8, .choices = 2, .ffn = 32, .shared = 1, .capacity = {.factor = 0.75, .group = 8}}};

Job job_of(const std::string& parallel, const Kind& kind) {
  Job job = small_job(parallel);
  job.model.experts = kind.spec;
  job.training.clip_norm = 0;
  return job;
}

class Experts : public ::testing::TestWithParam<Kind> {};
class ExpertsAlone : public ::testing::TestWithParam<Kind> {};

// The first step on one device, against the graph in double.
TEST_P(ExpertsAlone, GradientsAreThoseOfTheDefinition) {
  Job job = job_of("dp:1", GetParam());
  job.training.batch = 2;
  job.model.sequence = 8;
  job.model.vocab = 20;
  job.model.rope_scaling = {
      .factor = 4, .low_freq_factor = 0.1, .high_freq_factor = 0.2, .original_sequence = 8};
  std::vector<std::int32_t> ids, targets;
  for (int i = 0; i < 16; ++i) ids.push_back((i * 7 + i * i) % 20), targets.push_back((i * 5 + 3) % 20);
  RunOptions options{.steps = 1};
  options.batch = [&](auto, auto first, auto count, auto from, auto length, auto* out_ids,
                      auto* out_targets) {
    for (std::int64_t s = 0; s < count; ++s)
      for (std::int64_t i = 0; i < length; ++i) {
        const auto at = static_cast<std::size_t>((first + s) * 8 + from + i);
        out_ids[s * length + i] = ids[at], out_targets[s * length + i] = targets[at];
      }
  };
  // The weights at the start of the step are those after one with a learning rate of zero.
  Job still = job;
  still.training.lr = still.training.min_lr = 0;
  still.model.experts.bias_rate = 0;
  const RunResult start = run_in_process(still, options);
  const RunResult step = run_in_process(job, options);

  Graph graph = build_model(job.model, {.batch = 2, .loss_scale = 1.0 / 16});
  const auto gradients = differentiate(graph);
  Interpreter run(graph);
  for (const Tensor& t : graph.tensors)
    if (t.cls == TensorClass::kWeight && !t.saved.name.empty()) {
      Values& v = run[t.name];
      if (start.weights.contains(t.name)) {
        const auto& w = start.weights.at(t.name);
        v.assign(w.begin(), w.end());
      }
    }
  run["ids"].assign(ids.begin(), ids.end());
  run["targets"].assign(targets.begin(), targets.end());
  run.run(Phase::kInit), run.run(Phase::kForward), run.run(Phase::kBackward);
  EXPECT_NEAR(step.losses[0], run["loss"][0], 1e-5);
  int compared = 0;
  for (const auto& [weight, gradient] : gradients) {
    const auto& m = step.moments.at(graph[weight].name + ".adam_m");  // (1 - beta1) g
    std::vector<float> expected;
    for (const double g : run[graph[gradient].name])
      expected.push_back(static_cast<float>(g * (1 - job.training.beta1)));
    EXPECT_LT(relative(expected, m), 2e-5) << graph[weight].name;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

TEST_P(Experts, EveryLayoutEqualsOneDevice) {
  Job one_job = job_of("dp:1", GetParam());
  one_job.training.steps = 10;
  const RunResult one = run_in_process(one_job);
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.1) << "it does not learn";
  std::vector<std::string> layouts{"dp:2",
                                   "ep:2",
                                   "ep:4",
                                   "dp:2 ep:2",
                                   "ep:2 tp:2",
                                   "ep:2 tp:2 sp",
                                   "ep:2 cp:2",
                                   "ep:2 dp:2 zero1",
                                   "ep:2 dp:2 zero3",
                                   "dp:2 ep:2 zero2",
                                   "ep:4 zero1",
                                   "ep:2 zero3",
                                   "ep:2 tp:2 sp ep_tp zero1",
                                   "pp:2 ep:2",
                                   "ep:2 tpx:2 tpy:2",
                                   "tp:2 etp",
                                   "tp:4 sp etp",
                                   "ep:2 tp:2 sp etp",
                                   "dp:2 tp:2 sp etp zero1",
                                   "ring:2 ep:2"};
  if (GetParam().spec.count >= 8) layouts.push_back("ep:8");
  for (const std::string& layout : layouts) {
    Job job = job_of(layout, GetParam());
    job.training.steps = 10;
    const RunResult many = run_in_process(job);
    ASSERT_EQ(many.losses.size(), one.losses.size()) << layout;
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s], one.losses[s], 1e-4 * one.losses[s]) << layout << " step " << s;
    EXPECT_TRUE(many.strays.empty()) << layout;
  }
}

TEST_P(Experts, FirstGradientsOfEveryLayoutEqualOneDevice) {
  const RunResult one = run_in_process(job_of("dp:1", GetParam()), {.steps = 1});
  for (const char* layout :
       {"ep:4", "dp:2 ep:2", "ep:2 tp:2 sp", "ep:2 dp:2 zero3", "pp:2 ep:2 zero_bubble"}) {
    const RunResult many = run_in_process(job_of(layout, GetParam()), {.steps = 1});
    ASSERT_EQ(many.moments.size(), one.moments.size());
    for (const auto& [name, values] : one.moments)
      EXPECT_LT(relative(values, many.moments.at(name)), 1e-5) << layout << " " << name;
  }
}

// Experts over the axes of data, sequence and tensors at once, the major axis first.
TEST_P(Experts, FoldedIntoTheGrid) {
  Job one_job = job_of("dp:1", GetParam());
  const RunResult one = run_in_process(one_job, {.steps = 2});
  for (const auto& [layout, axes] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{{"dp:2 tp:2 sp", {"dp", "tp"}},
                                                                     {"dp:2 cp:2", {"cp", "dp"}},
                                                                     {"dp:2 tp:2 sp", {"tp"}},
                                                                     {"dp:2 tp:2 sp zero1", {"dp", "tp"}},
                                                                     {"dp:2 tp:2 sp zero3", {"dp"}}}) {
    Job job = job_of(layout, GetParam());
    ShardRule rule;
    rule.tensor = "layers.*.experts.*";
    rule.dims = {{"experts", axes}};
    for (const char* weight : {"gate", "up", "down"}) {
      rule.tensor = std::string("layers.*.experts.") + weight;
      job.parallel.rules.push_back(rule);
    }
    const RunResult many = run_in_process(job, {.steps = 2});
    for (std::size_t s = 0; s < one.losses.size(); ++s)
      EXPECT_NEAR(many.losses[s], one.losses[s], 1e-5 * one.losses[s]) << layout;
    for (const auto& [name, values] : one.moments)
      EXPECT_LT(relative(values, many.moments.at(name)), 1e-4) << layout << " " << name;
  }
}

TEST_P(Experts, RunsAreBitwiseTheSame) {
  Job job = job_of("dp:2 ep:2", GetParam());
  job.training.micro_batches = 2;
  const RunResult once = run_in_process(job, {.steps = 3});
  for (const bool threads : {false, true}) {
    const RunResult again = run_in_process(job, {.thread_per_stream = threads, .steps = 3});
    EXPECT_EQ(again.losses, once.losses);
    EXPECT_TRUE(again.weights == once.weights);
  }
  job.training.recompute = {{"full", 0, 1}};
  EXPECT_TRUE(run_in_process(job, {.steps = 3}).weights == once.weights);
}

TEST_P(Experts, AcrossHosts) {
  const Job job = job_of("ep:4", GetParam());
  const RunResult one = run_in_process(job, {.steps = 3}),
                  two = run_in_process(job, {.hosts = 2, .steps = 3});
  for (std::size_t s = 0; s < one.losses.size(); ++s) EXPECT_NEAR(one.losses[s], two.losses[s], 1e-5);
}

TEST_P(Experts, Generate) {
  Job plain = job_of("dp:1", GetParam());
  plain.training.steps = 6;
  plain.run.generate.tokens = 6;
  const RunResult one = run_in_process(plain);
  for (const char* layout : {"ep:2", "ep:2 tp:2 sp"}) {
    Job job = job_of(layout, GetParam());
    job.training.steps = 6;
    job.run.generate.tokens = 6;
    EXPECT_EQ(run_in_process(job).tokens, one.tokens) << layout;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExpertsAlone,
                         ::testing::Values(kMixtral, kSwitch, kDeepSeek, kGroups, kCapacity,
                                           kCapacityOfGroups),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Kinds, Experts, ::testing::Values(kMixtral, kSwitch, kDeepSeek, kCapacity),
                         [](const auto& info) { return info.param.name; });

// Fills the room behind a device's rows with NaN. Counts the filled bytes, and those of them that were
// written since.
class RoomBehindRows {
 public:
  explicit RoomBehindRows(int devices) : filled_(static_cast<std::size_t>(devices)) {}

  void after(int device, const Program& program, std::size_t index, const Addresses& at) {
    auto& filled = filled_[static_cast<std::size_t>(device)];
    const Instr& instr = program.instrs[index];
    for (std::size_t i = 0; i < instr.in.size(); ++i) count_written(filled, instr.in[i], at.in[i]);
    for (const Operand& o : instr.out) filled.erase(o.buffer.value);
    const auto counts = counts_of_rows(program);
    for (std::size_t o = 0; o < instr.out.size(); ++o) {
      const auto of = counts.find(instr.out[o].buffer.value);
      if (of == counts.end() || instr.out[o].empty.value == 0) continue;
      const std::optional<std::int64_t> rows = rows_of(of->second, instr, at);
      if (!rows) continue;
      const std::int64_t used = *rows * of->second.row, all = instr.out[o].bytes.value;
      std::memset(at.out[o] + used, kFill, static_cast<std::size_t>(all - used));
      filled[instr.out[o].buffer.value] = used;
      bytes_filled += all - used;
    }
  }
  std::atomic<std::int64_t> bytes_filled = 0, bytes_written = 0;

 private:
  static constexpr int kFill = 0xff;  // four of them are a NaN

  static std::optional<std::int64_t> rows_of(const RowCounts& of, const Instr& instr, const Addresses& at) {
    for (std::size_t i = 0; i < instr.in.size(); ++i)
      if (instr.in[i].buffer == of.counts.buffer) {
        const auto* n = reinterpret_cast<const std::int32_t*>(at.in[i]);
        return std::accumulate(n, n + of.counts.bytes.value / 4, std::int64_t{0});
      }
    return std::nullopt;
  }

  // Readers of the buffer find the room as it was left, also behind their own results in place.
  void count_written(const std::map<std::int32_t, std::int64_t>& filled, const Operand& o,
                     const std::byte* at) {
    const auto known = filled.find(o.buffer.value);
    if (known == filled.end()) return;
    for (std::int64_t b = known->second; b < o.bytes.value; ++b) bytes_written += at[b] != std::byte{kFill};
  }

  std::vector<std::map<std::int32_t, std::int64_t>> filled_;  // by device and buffer: the first filled byte
};

// Buffers have room for the case that all tokens choose the same experts. Kernels neither write to the unused
// room nor use its content.
TEST(ExpertRoom, IsNeitherReadNorWrittenBehindTheRows) {
  for (const char* parallel : {"ep:4", "dp:2 ep:2", "ep:4 bf16"}) {
    const Job job = job_of(parallel, kMixtral);
    RoomBehindRows room(job.supernode.devices);
    const RunResult plain = run_in_process(job, {.steps = 2});
    RunOptions options{.steps = 2};
    options.observer = [&](int d, const Program& p, std::size_t i, const Addresses& at) {
      room.after(d, p, i, at);
    };
    const RunResult filled = run_in_process(job, options);
    EXPECT_GT(room.bytes_filled, 0) << parallel;
    EXPECT_EQ(room.bytes_written, 0) << parallel;
    EXPECT_EQ(filled.losses, plain.losses) << parallel;
    EXPECT_EQ(filled.weights, plain.weights) << parallel;
  }
}

// Buffers of rows, with the number of rows that all experts of a device may have.
std::int64_t largest_rows(const Job& job, const std::string& name) {
  std::int64_t most = 0;
  const Compiled compiled = compile(job);
  for (const Buffer& b : compiled.plan.roles[0].program("train").buffers)
    if (b.name.starts_with(name)) most = std::max(most, b.bytes.value);
  return most / (4 * job.model.hidden);
}

// Sequences of 32 tokens, 8 of them on each of 4 devices, which have 2 of 8 experts each; each token has 2
// choices.
TEST(ExpertCapacity, BoundsTheMemory) {
  Job job = job_of("ep:4", kMixtral);
  const std::int64_t tokens = std::int64_t{job.training.batch} * job.model.sequence;
  const std::string rows = "layers.0.experts.rows";
  EXPECT_EQ(largest_rows(job, rows), 2 * tokens) << "all of them may choose the same two";
  job.model.experts.capacity.factor = 1;
  EXPECT_EQ(largest_rows(job, rows), 2 * tokens / 4);
  job.model.experts.capacity.factor = 1.5;
  EXPECT_EQ(largest_rows(job, rows), 3 * tokens / 4);
  job.model.experts.capacity = {.factor = 1, .group = 1};
  EXPECT_EQ(largest_rows(job, rows), 2 * tokens) << "one of each group of a token";
}

// Without drops a capacity bounds memory alone: the run is the same to the bit.
TEST(ExpertCapacity, DropsNothing) {
  Job job = job_of("ep:4", kMixtral);
  const RunResult with_all = run_in_process(job, {.steps = 2});
  const std::int64_t most = largest_rows(job, "layers.0.experts.rows");
  job.model.experts.capacity = {.factor = 3, .drop = false};
  EXPECT_EQ(largest_rows(job, "layers.0.experts.rows"), most * 3 / 4);
  const RunResult bounded = run_in_process(job, {.steps = 2});
  EXPECT_EQ(bounded.losses, with_all.losses);
  EXPECT_EQ(bounded.weights, with_all.weights);
}

// Routing is never even to the row, so the first step of this run brings some device more than an even share.
TEST(ExpertCapacity, MoreThanItsRoomIsAnError) {
  Job job = job_of("ep:4", kMixtral);
  job.model.experts.capacity = {.factor = 1, .drop = false};
  try {
    run_in_process(job, {.steps = 1});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDoesNotFit) << e.what();
    EXPECT_THAT(e.what(), ::testing::HasSubstr("its memory has room for 128"));
    EXPECT_EQ(e.place(), "model.experts.capacity.factor");
  }
}

// Bytes of rows that all devices send together: each row of a token whose expert is on another device, to the
// expert and back, forward and backward.
TEST(ExpertTraffic, EveryRowTravelsFourTimes) {
  Job job = job_of("ep:2", kMixtral);
  const RunResult r = run_in_process(job, {.steps = 1});
  std::int64_t rows = 0, counts = 0;
  for (const InvocationStats& s : r.stats)
    for (const Traffic& t : s.traffic)
      if (t.kind.collective == "all-to-all-v") rows += t.bytes.value, counts += t.count;
  const std::int64_t row = job.model.hidden * 4,
                     most = std::int64_t{job.training.batch} * job.model.sequence * 2;
  EXPECT_EQ(counts, 2 * 4 * job.model.layers);
  EXPECT_EQ(rows % (4 * row), 0) << "the same rows each time, in each layer";
  EXPECT_GT(rows, 0);
  EXPECT_LT(rows, 4 * row * most * job.model.layers);
}

// If each token chooses all experts, the number of travelling rows is known: each of p devices has the p-th
// part of the experts, so (p - 1)/p of all rows have an expert on another device.
TEST(ExpertTraffic, IsTheFormulaWhereAllAreChosen) {
  for (const int p : {2, 4}) {
    Job job = job_of("ep:" + std::to_string(p), kMixtral);
    job.model.experts.choices = job.model.experts.count;
    const RunResult r = run_in_process(job, {.steps = 1});
    std::int64_t bytes = 0;
    for (const InvocationStats& s : r.stats)
      for (const Traffic& t : s.traffic)
        if (t.kind.collective == "all-to-all-v") bytes += t.bytes.value;
    const std::int64_t rows = std::int64_t{job.training.batch} * job.model.sequence * job.model.experts.count;
    EXPECT_EQ(bytes, 4 * job.model.layers * rows * (p - 1) / p * job.model.hidden * 4) << p;
  }
}

TEST(ExpertBalance, TheBiasEvensTheLoad) {
  Job job = job_of("ep:2", kDeepSeek);
  job.model.experts.aux_loss = 0;
  job.model.experts.bias_rate = 0.02;
  job.training.steps = 10;
  const RunResult r = run_in_process(job);
  const auto& bias = r.weights.at("layers.1.experts.bias");
  float most = 0;
  for (const float b : bias) most = std::max(most, std::abs(b));
  EXPECT_GT(most, 0.02F) << "it moves";
  EXPECT_LE(most, 10 * 0.02F + 1e-6F) << "by the rate each step";
}

// Two axes on the sequence have the order of the data, in whatever order mesh and presets name them.
TEST(ExpertLayouts, AxesOfOneDimensionInAnyOrder) {
  for (const std::vector<std::string>& presets :
       {std::vector<std::string>{"ring", "cp", "ep"}, {"cp", "ep", "ring"}, {"ep", "ring", "cp"}}) {
    Job job = job_of("cp:2 ring:2 ep:2", kMixtral);
    job.parallel.presets = presets;
    EXPECT_NO_THROW(compile(job)) << presets[0] << " first";
  }
}

TEST(ExpertLayouts, ThatCannotBeAreRefused) {
  // With tp without sp every device has all tokens, and would have to pick rows rather than be sent them.
  Job job = job_of("tp:2", kMixtral);
  for (const char* weight : {"gate", "up", "down"}) {
    ShardRule rule;
    rule.tensor = std::string("layers.*.experts.") + weight;
    rule.dims = {{"experts", {"tp"}}};
    rule.origin = "the rule of the experts";
    job.parallel.rules.push_back(rule);
  }
  const auto place_of_refusal = [&] {
    try {
      compile(job);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadLayout) << e.what();
      return e.place();
    }
    return std::string("not refused");
  };
  EXPECT_EQ(place_of_refusal(), "the rule of the experts");
  job.parallel.rules = {{"layers.*.experts.rows", {{"experts", {"tp"}}}, "the rule of the rows"}};
  EXPECT_EQ(place_of_refusal(), "the rule of the rows");
}

}  // namespace
}  // namespace hyperrun::testing
