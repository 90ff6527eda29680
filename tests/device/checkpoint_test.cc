// State to a checkpoint and back. The resumed run is bitwise the uninterrupted one, another layout loads the
// same state, and a failure leaves nothing behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "runtime/device/saved_runs.h"
#include "runtime/device/state_files.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

constexpr std::int64_t kSteps = 8, kHalf = 4;

Job job(int dp, int tp, const std::vector<std::string>& presets = {}) {
  Job job = small_job(dp, tp, presets);
  job.training.steps = kSteps;
  return job;
}

class Checkpoint : public ::testing::Test {
 protected:
  // The first half of a run, saved.
  RunResult first_half(const Job& j) { return run_in_process(j, {.save_to = path(), .steps = kHalf}); }
  std::string path() const { return (dir_ / "checkpoint").string(); }

  TemporaryDirectory dir_;
};

TEST_F(Checkpoint, TheResumedRunIsTheUninterruptedOne) {
  for (const auto& presets : {std::vector<std::string>{"sp", "zero1"}, {}}) {
    Job j = job(2, 2, presets);
    j.training.micro_batches = 2;
    j.run.seed = std::numeric_limits<std::uint64_t>::max();  // as legal as any other
    const RunResult whole = run_in_process(j);
    first_half(j);
    EXPECT_EQ(read_trainer_state(path()).next_step, kHalf);
    EXPECT_EQ(read_trainer_state(path()).seed, j.run.seed);
    const RunResult rest = run_in_process(j, {.load_from = path(), .first_step = kHalf});
    EXPECT_EQ(rest.losses, std::vector<double>(whole.losses.begin() + kHalf, whole.losses.end()));
    EXPECT_TRUE(rest.weights == whole.weights);
    EXPECT_TRUE(rest.moments == whole.moments);
  }
}

TEST_F(Checkpoint, AnotherLayoutLoadsTheSameBits) {
  const Job from = job(2, 2, {"sp", "zero1"});
  const RunResult saved = first_half(from);
  const RunResult whole = run_in_process(from);
  for (const auto& [dp, tp, presets] :
       {std::tuple{1, 1, std::vector<std::string>{}}, {1, 4, {"sp"}}, {4, 1, {"zero1"}}, {2, 1, {}}}) {
    const RunResult loaded =
        run_in_process(job(dp, tp, presets), {.load_from = path(), .first_step = kHalf, .steps = kHalf});
    EXPECT_TRUE(loaded.weights == saved.weights) << dp << "x" << tp;
    EXPECT_TRUE(loaded.moments == saved.moments) << dp << "x" << tp;
    const RunResult rest = run_in_process(job(dp, tp, presets), {.load_from = path(), .first_step = kHalf});
    ASSERT_EQ(rest.losses.size(), static_cast<std::size_t>(kSteps - kHalf));
    for (std::size_t s = 0; s < rest.losses.size(); ++s)
      EXPECT_NEAR(rest.losses[s], whole.losses[kHalf + s], 1e-4 * whole.losses[kHalf + s]) << dp << "x" << tp;
  }
}

TEST_F(Checkpoint, AcrossHosts) {
  const Job j = job(2, 2, {"zero1"});
  const RunResult saved = run_in_process(j, {.hosts = 2, .save_to = path(), .steps = kHalf});
  const RunResult loaded =
      run_in_process(j, {.hosts = 4, .load_from = path(), .first_step = kHalf, .steps = kHalf});
  EXPECT_TRUE(loaded.weights == saved.weights);
  EXPECT_TRUE(loaded.moments == saved.moments);
}

// The names and shapes that other programs expect.
TEST_F(Checkpoint, HasTheMatricesOfHuggingFace) {
  first_half(job(1, 2));
  const SafetensorsReader file(path());
  using Shape = std::vector<std::int64_t>;
  const std::map<std::string, Shape> shapes{{"model.embed_tokens.weight", {320, 64}},
                                            {"model.layers.1.input_layernorm.weight", {64}},
                                            {"model.layers.1.self_attn.q_proj.weight", {64, 64}},
                                            {"model.layers.1.self_attn.k_proj.weight", {32, 64}},
                                            {"model.layers.1.self_attn.v_proj.weight", {32, 64}},
                                            {"model.layers.1.self_attn.o_proj.weight", {64, 64}},
                                            {"model.layers.1.post_attention_layernorm.weight", {64}},
                                            {"model.layers.1.mlp.gate_proj.weight", {128, 64}},
                                            {"model.layers.1.mlp.up_proj.weight", {128, 64}},
                                            {"model.layers.1.mlp.down_proj.weight", {64, 128}},
                                            {"model.norm.weight", {64}},
                                            {"lm_head.weight", {320, 64}}};
  EXPECT_EQ(file.tensors().size(), 2 * 9 + 3U);
  for (const auto& [name, shape] : shapes) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->info.shape, shape) << name;
  }
}

// Each matrix of an expert is a tensor of its own; some of latent attention are parts of one.
TEST_F(Checkpoint, HasTheMatricesOfDeepSeek) {
  Job from = small_job("ep:2 tp:2 sp");
  become_deepseek(from);
  from.training.steps = kSteps;
  const RunResult saved = first_half(from);
  using Shape = std::vector<std::int64_t>;
  std::map<std::string, Shape> shapes{{"self_attn.q_a_proj.weight", {24, 64}},
                                      {"self_attn.q_a_layernorm.weight", {24}},
                                      {"self_attn.q_b_proj.weight", {8 * 12, 24}},
                                      {"self_attn.kv_a_proj_with_mqa.weight", {16 + 4, 64}},
                                      {"self_attn.kv_a_layernorm.weight", {16}},
                                      {"self_attn.kv_b_proj.weight", {8 * (8 + 10), 16}},
                                      {"self_attn.o_proj.weight", {64, 80}},
                                      {"mlp.gate.weight", {8, 64}},
                                      {"mlp.gate.e_score_correction_bias", {8}},
                                      {"mlp.shared_experts.gate_proj.weight", {24, 64}},
                                      {"mlp.shared_experts.up_proj.weight", {24, 64}},
                                      {"mlp.shared_experts.down_proj.weight", {64, 24}},
                                      {"input_layernorm.weight", {64}},
                                      {"post_attention_layernorm.weight", {64}}};
  for (int e = 0; e < 8; ++e) {
    shapes["mlp.experts." + std::to_string(e) + ".gate_proj.weight"] = {24, 64};
    shapes["mlp.experts." + std::to_string(e) + ".up_proj.weight"] = {24, 64};
    shapes["mlp.experts." + std::to_string(e) + ".down_proj.weight"] = {64, 24};
  }
  const SafetensorsReader file(path());
  for (const auto& [name, shape] : shapes)
    for (const char* layer : {"model.layers.1.", "model.layers.2."}) {
      ASSERT_NE(file.find(layer + name), nullptr) << layer << name;
      EXPECT_EQ(file.find(layer + name)->info.shape, shape) << name;
    }
  EXPECT_EQ(file.get("model.layers.2.eh_proj.weight", Shape{64, 128}).info.shape, (Shape{64, 128}));
  // The first layer is dense; the last has three norms and a projection more.
  EXPECT_EQ(file.tensors().size(), 3U + 9 + 3 + shapes.size() + shapes.size() + 4);

  const std::string again = (dir_ / "again").string();
  for (const char* layout : {"dp:1", "dp:2 ep:2 zero3", "pp:2 tp:2"}) {
    Job other = small_job(layout);
    become_deepseek(other);
    other.training.steps = kSteps;
    const RunResult loaded =
        run_in_process(other, {.save_to = again, .load_from = path(), .first_step = kHalf, .steps = kHalf});
    EXPECT_TRUE(loaded.weights == saved.weights) << layout;
    EXPECT_TRUE(loaded.moments == saved.moments) << layout;
    const SafetensorsReader copy(again);
    for (const auto& [name, view] : file.tensors()) {
      const auto bytes = copy.get(name, view.info.shape).data;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), view.data.begin())) << layout << " " << name;
    }
  }
}

// One slice of a tensor, `wanted` of whose elements are shared: each lies where Hugging Face reads it.
TEST(SavedRuns, OfSlicesOfAFusedTensor) {
  StateTensor t;
  t.shape = {2, 3, 4};
  t.saved = {"a.*.b", {5, 4}, 2, 8, 20};
  EXPECT_EQ(saved_names(t.saved), (std::vector<std::string>{"a.0.b", "a.1.b"}));
  const std::vector<SavedRun> runs = saved_runs(t);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].slice, 1U);
  EXPECT_EQ(runs[1].there, 8 * 4) << "behind two rows of 4";
  EXPECT_EQ(runs[1].ours, 12U * 4);
  EXPECT_EQ(runs[1].bytes, 12 * 4);
}

// Rows of padding have no place in a file.
TEST(SavedRuns, OfATensorWithPadding) {
  StateTensor t;
  t.shape = {8, 3};
  t.saved = {"embed", {5, 3}};
  const std::vector<SavedRun> runs = saved_runs(t);
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].there, 0);
  EXPECT_EQ(runs[0].ours, 0U);
  EXPECT_EQ(runs[0].bytes, 5 * 3 * 4);
}

// Weights of 16 bits, as most published ones are.
struct Narrow {
  DType dtype;
  std::uint16_t (*from)(float);
  float (*to)(std::uint16_t);
};
const Narrow kBrain{DType::kBF16, f32_to_bf16, bf16_to_f32};
// Conversion of a number that is small enough.
std::uint16_t f16_of(float v) {
  int exponent = 0;
  const float size = std::frexp(std::abs(v), &exponent);  // in [0.5, 1)
  const bool tiny = exponent < -13;
  const long bits = tiny ? std::lround(std::ldexp(std::abs(v), 24))
                         : ((exponent + 13L) << 10) + std::lround(std::ldexp(size, 11));
  return static_cast<std::uint16_t>(bits | (std::signbit(v) ? 0x8000 : 0));
}
const Narrow kHalfPrecision{DType::kF16, f16_of, f16_to_f32};

void narrow(const std::string& checkpoint, const Narrow& format) {
  std::vector<TensorInfo> infos;
  std::vector<std::vector<std::uint16_t>> rounded;
  {
    const SafetensorsReader reader(checkpoint);
    for (const auto& [name, view] : reader.tensors()) {
      infos.push_back({name, format.dtype, view.info.shape});
      std::vector<std::uint16_t>& list = rounded.emplace_back();
      for (std::size_t at = 0; at < view.data.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, view.data.data() + at, sizeof value);
        list.push_back(format.from(value));
      }
    }
  }
  SafetensorsWriter writer(checkpoint + "/model.safetensors", infos);
  for (std::size_t t = 0; t < rounded.size(); ++t) writer.write(t, 0, std::as_bytes(std::span(rounded[t])));
  writer.commit();
}

// Each weight is widened and otherwise unchanged.
TEST_F(Checkpoint, OfSixteenBitsIsWidened) {
  EXPECT_EQ(f16_of(1), 0x3c00);
  EXPECT_EQ(f16_of(-0.3333F), 0xb555);
  EXPECT_EQ(f16_of(1e-6F), 0x0011);
  for (const Narrow& format : {kBrain, kHalfPrecision}) {
    const RunResult saved = first_half(job(2, 1));
    std::filesystem::remove(path() + "/optimizer.safetensors");
    narrow(path(), format);
    const RunResult loaded =
        run_in_process(job(1, 2), {.load_from = path(), .first_step = kHalf, .steps = kHalf});
    ASSERT_EQ(loaded.weights.size(), saved.weights.size());
    for (const auto& [name, values] : saved.weights) {
      std::vector<float> expected;
      for (const float v : values) expected.push_back(format.to(format.from(v)));
      EXPECT_EQ(loaded.weights.at(name), expected) << name;
    }
  }
}

TEST_F(Checkpoint, WithoutMomentsTheyStartFromZero) {
  const RunResult saved = first_half(job(2, 1));
  std::filesystem::remove(path() + "/optimizer.safetensors");
  std::filesystem::remove(path() + "/hyperrun_state.json");
  EXPECT_EQ(read_trainer_state(path()).next_step, 0);
  const RunResult loaded =
      run_in_process(job(1, 2), {.load_from = path(), .first_step = kHalf, .steps = kHalf});
  EXPECT_TRUE(loaded.weights == saved.weights);
  for (const auto& [name, values] : loaded.moments)
    EXPECT_EQ(values, std::vector<float>(values.size(), 0)) << name;
}

TEST_F(Checkpoint, ASaveThatFailsLeavesNothingAndEndsAllDevices) {
  put_file(dir_ / "file", "in the way");
  EXPECT_ERROR(run_in_process(job(2, 2), {.save_to = (dir_ / "file").string() + "/checkpoint", .steps = 1}),
               Code::kUnwritable, "file", "");
  EXPECT_EQ(dir_.entries(), 1) << "only the file that was in the way";
}

TEST_F(Checkpoint, ADeviceThatFailsLeavesTheLastCheckpointAsItWas) {
  const RunResult saved = first_half(job(2, 1));
  RunOptions fails{.save_to = path(), .load_from = path(), .first_step = kHalf};
  fails.before_step = [](int device, std::int64_t step) {
    if (device == 1 && step == kSteps - 1) throw Error(Code::kDeviceLost, "gone");
  };
  EXPECT_ANY_THROW(run_in_process(job(2, 1), fails));
  EXPECT_EQ(dir_.entries(), 1);
  EXPECT_EQ(read_trainer_state(path()).next_step, kHalf);
  const RunResult loaded =
      run_in_process(job(1, 1), {.load_from = path(), .first_step = kHalf, .steps = kHalf});
  EXPECT_TRUE(loaded.weights == saved.weights);
}

TEST_F(Checkpoint, WhatIsNotThereOrDoesNotFitIsRefusedByAllDevices) {
  EXPECT_ERROR(run_in_process(job(2, 2), {.load_from = path(), .steps = 1}), Code::kMissingFile, "checkpoint",
               "");
  first_half(job(2, 1));
  Job deeper = job(2, 2);
  deeper.model.layers = 3;
  EXPECT_ERROR(run_in_process(deeper, {.load_from = path(), .steps = 1}), Code::kBadCheckpoint, "layers.2",
               "");
  Job wider = job(2, 2);
  wider.model.ffn = 256;
  EXPECT_ERROR(run_in_process(wider, {.load_from = path(), .steps = 1}), Code::kBadCheckpoint,
               "mlp.gate_proj", "128");
  std::filesystem::resize_file(path() + "/optimizer.safetensors", 1000);
  EXPECT_ERROR(run_in_process(job(2, 2), {.load_from = path(), .steps = 1}), Code::kBadCheckpoint,
               "optimizer.safetensors", "");
}

}  // namespace
}  // namespace hyperrun::testing
