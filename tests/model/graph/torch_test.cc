// The whole way from a checkpoint to trained weights, against PyTorch in float64 (torch_fixture.py): loss,
// log-probabilities, every gradient, clipping, learning rates and AdamW, on one device and on four.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/relative.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

constexpr const char* kFixture = HYPERRUN_SOURCE_DIR "/tests/model/graph/fixture";
constexpr std::int64_t kBatch = 4, kSequence = 16, kVocab = 66;

// The allowed difference of float32 from float64: some thousand sums with errors of about 6e-8.
constexpr double kRoundOff = 1e-5;

template <class T>
std::vector<T> tensor(const SafetensorsReader& file, const std::string& name) {
  const TensorView* view = file.find(name);
  EXPECT_NE(view, nullptr) << name;
  std::vector<T> values(view->data.size() / sizeof(T));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

struct Setup {
  std::string name;
  std::string variant;
  int dp = 1, tp = 1;
  std::vector<std::string> presets = {};
};

std::ostream& operator<<(std::ostream& out, const Setup& s) { return out << s.name; }

class Torch : public ::testing::TestWithParam<Setup> {
 protected:
  Job job() const {
    Job job;
    job.supernode.devices = GetParam().dp * GetParam().tp;
    job.supernode.hbm = Bytes(std::int64_t{1} << 20);
    job.model = {.layers = 2,
                 .hidden = 16,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 4,
                 .ffn = 40,
                 .vocab = kVocab,
                 .sequence = kSequence,
                 .tied_head = GetParam().variant == "tied"};
    const std::string& variant = GetParam().variant;
    if (variant != "tied") job.model.name = variant;
    if (variant == "mixtral") job.model.experts = {.count = 4, .choices = 2, .ffn = 12};
    if (variant == "deepseek_v3") become_deepseek(job.model);
    if (variant.starts_with("gpt2")) become_gpt2(job.model, variant == "gpt2");
    job.parallel.mesh = {{"dp", GetParam().dp}, {"tp", GetParam().tp}};
    job.parallel.presets = GetParam().presets;
    job.training.steps = 8;
    job.training.batch = kBatch;
    job.training.lr = 1e-2;
    job.training.min_lr = 1e-3;
    job.training.warmup_steps = 2;
    job.training.clip_norm = 0.5;
    return job;
  }

  static void become_deepseek(ModelSpec& model) {
    model.kv_heads = model.heads;
    model.head_dim = 10;
    model.latent = {.q_rank = 12, .kv_rank = 8, .nope_dim = 6, .rope_dim = 4, .value_dim = 5};
    model.experts = {.count = 4,
                     .choices = 2,
                     .ffn = 12,
                     .shared = 1,
                     .dense_layers = 1,
                     .scoring = "sigmoid",
                     .scale = 2.5,
                     .bias_rate = 0.01,
                     .groups = 2};
    model.mtp = {.layers = 1, .loss_factor = 0.3};
  }

  static void become_gpt2(ModelSpec& model, bool tied) {
    model.name = "gpt2";
    model.kv_heads = model.heads;
    model.tied_head = tied;
    model.positions = 20;
  }

  // The result of a run is read from the checkpoint at its end.
  RunOptions options(std::int64_t steps) {
    RunOptions o;
    o.load_from = directory();
    o.save_to = saved();
    o.steps = steps;
    o.batch = [this](auto, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
      copy_columns(ids_, first, count, from, length, ids);
      copy_columns(targets_, first, count, from, length, targets);
    };
    return o;
  }

  static void copy_columns(const std::vector<std::int32_t>& all, std::int64_t first, std::int64_t count,
                           std::int64_t from, std::int64_t length, std::int32_t* to) {
    for (std::int64_t s = 0; s < count; ++s)
      std::copy_n(&all[(first + s) * kSequence + from], length, to + s * length);
  }

  // A bias of all keys changes no softmax. Its gradient is only rounding, so AdamW may change it arbitrarily.
  static void leave_out_keys(std::vector<float>& bias, const std::vector<float>& instead) {
    const std::size_t third = bias.size() / 3;
    std::copy_n(&instead[third], third, &bias[third]);
  }

  std::vector<float> expected(const std::string& name) const { return tensor<float>(expected_, name); }

  static std::string directory() { return std::string(kFixture) + "/" + GetParam().variant; }

  std::string saved() const { return (dir_ / "saved").string(); }

  TemporaryDirectory dir_;
  SafetensorsReader expected_{directory() + "/expected.safetensors"};
  SafetensorsReader initial_{directory() + "/model.safetensors"};
  std::vector<std::int32_t> ids_ = tensor<std::int32_t>(expected_, "ids");
  std::vector<std::int32_t> targets_ = tensor<std::int32_t>(expected_, "targets");
};

// After one step from zero, m = (1 - beta1) g.
TEST_P(Torch, GradientsOfEveryWeight) {
  Job j = job();
  j.training.clip_norm = 0;
  run_in_process(j, options(1));
  const SafetensorsReader moments(saved() + "/optimizer.safetensors");
  std::size_t checked = 0;
  for (const auto& [name, view] : expected_.tensors()) {
    const std::string prefix = "grad.";
    if (!name.starts_with(prefix)) continue;
    std::vector<float> gradient = tensor<float>(moments, name.substr(prefix.size()) + ".adam_m");
    for (float& g : gradient) g /= static_cast<float>(1 - j.training.beta1);
    EXPECT_LT(relative(expected(name), gradient), kRoundOff) << name;
    ++checked;
  }
  EXPECT_EQ(2 * checked, moments.tensors().size());
}

TEST_P(Torch, ThreeStepsOfTraining) {
  const RunResult run = run_in_process(job(), options(3));
  const std::vector<float> losses = expected("loss"), norms = expected("grad_norm");
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_NEAR(run.losses[s], losses[s], kRoundOff * static_cast<double>(losses[s])) << "step " << s;
    EXPECT_NEAR(run.grad_norms[s], norms[s], kRoundOff * static_cast<double>(norms[s])) << "step " << s;
  }
  const SafetensorsReader weights(saved());
  EXPECT_EQ(weights.tensors().size(), initial_.tensors().size());
  for (const auto& [name, view] : weights.tensors()) {
    std::vector<float> weight = tensor<float>(weights, name);
    const std::vector<float> after = expected("after." + name);
    if (name.ends_with("c_attn.bias")) leave_out_keys(weight, after);
    EXPECT_LT(relative(after, weight), kRoundOff) << name;
    // Compares the changes by training, without the initial values. Adam divides by the root of the second
    // moment, so that an element with a gradient near zero shows that gradient's relative error.
    const std::vector<float> before = tensor<float>(initial_, name);
    std::vector<float> moved = weight, should_move = after;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= before[i], should_move[i] -= before[i];
    EXPECT_LT(relative(should_move, moved), 1e-3) << name;
  }
}

// The logits of a position, up to a constant, which does not change a softmax. All other targets are ignored
// and the learning rate is 0, so the loss of step j is the negative log-probability of token j.
TEST_P(Torch, LogProbabilities) {
  const std::vector<float> logits = expected("logits");
  Job j = job();
  j.training.lr = j.training.min_lr = 0;
  if (j.model.experts.bias_rate > 0) j.model.experts.bias_rate = 1e-30;  // too small to matter
  for (const std::int64_t position : {std::int64_t{0}, kSequence + 7, 4 * kSequence - 1}) {
    RunOptions o = options(kVocab);
    o.save_to.clear();
    o.batch = [&](auto step, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
      std::vector<std::int32_t> one(targets_.size(), -1);
      one[static_cast<std::size_t>(position)] = static_cast<std::int32_t>(step);
      copy_columns(ids_, first, count, from, length, ids);
      copy_columns(one, first, count, from, length, targets);
    };
    const RunResult run = run_in_process(j, o);
    const float* row = &logits[static_cast<std::size_t>(position * kVocab)];
    double sum = 0;
    for (std::int64_t v = 0; v < kVocab; ++v) sum += std::exp(static_cast<double>(row[v]));
    for (std::int64_t v = 0; v < kVocab; ++v) {
      const double wanted = std::log(sum) - static_cast<double>(row[v]);
      EXPECT_NEAR(run.losses[static_cast<std::size_t>(v)] * (kBatch * kSequence), wanted,
                  kRoundOff * (1 + wanted))
          << "position " << position << " token " << v;
    }
  }
}

// Scores at a temperature are PyTorch's. A policy with equal rewards for all tokens, at its own log
// probabilities, has the gradient of the cross entropy (docs/policy.md).
TEST_P(Torch, ScoresAndAPolicysGradients) {
  Job j = job();
  if (j.model.mtp.layers > 0)
    GTEST_SKIP() << "a policy has no modules for further tokens, the checkpoint has";
  j.training.clip_norm = 0;
  const Samples scored{.tokens = kSequence, .ids = ids_, .targets = targets_};
  const std::vector<float> logits = expected("logits");
  for (const double temperature : {1.0, 0.6}) {
    j.training.policy = {.clip = 0.2, .temperature = temperature};
    RunOptions o;
    o.load_from = directory();
    o.only_scores = true;
    o.samples = [&](auto) { return scored; };
    const std::vector<float> logp = run_in_process(j, o).logp;
    ASSERT_EQ(logp.size(), targets_.size());
    for (std::size_t i = 0; i < logp.size(); ++i) {
      const float* row = &logits[i * kVocab];
      double sum = 0;
      for (std::int64_t v = 0; v < kVocab; ++v) sum += std::exp(static_cast<double>(row[v]) / temperature);
      const double wanted = static_cast<double>(row[targets_[i]]) / temperature - std::log(sum);
      EXPECT_NEAR(logp[i], wanted, kRoundOff * (1 - wanted)) << "token " << i << " at " << temperature;
    }
    if (temperature != 1) continue;
    Samples own = scored;
    own.weight.assign(logp.size(), 1.0F / static_cast<float>(logp.size()));
    own.advantage.assign(logp.size(), 1);
    own.behaviour = own.reference = logp;
    o = options(1);
    o.samples = [&](auto) { return own; };
    const RunResult run = run_in_process(j, o);
    EXPECT_NEAR(run.losses[0], -1, kRoundOff);
    const SafetensorsReader moments(saved() + "/optimizer.safetensors");
    for (const auto& [name, view] : expected_.tensors()) {
      if (!name.starts_with("grad.")) continue;
      std::vector<float> gradient = tensor<float>(moments, name.substr(5) + ".adam_m");
      for (float& g : gradient) g /= static_cast<float>(1 - j.training.beta1);
      EXPECT_LT(relative(expected(name), gradient), kRoundOff) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Torch,
    ::testing::Values(Setup{"llama", "llama"}, Setup{"tied", "tied"}, Setup{"qwen3", "qwen3"},
                      Setup{"mixtral", "mixtral"}, Setup{"deepseek_v3", "deepseek_v3"},
                      Setup{"mixtral_dp2tp2sp", "mixtral", 2, 2, {"dp", "tp", "sp"}},
                      Setup{"deepseek_v3_dp2tp2spzero3", "deepseek_v3", 2, 2, {"dp", "tp", "sp", "zero3"}},
                      Setup{"gpt2", "gpt2"}, Setup{"gpt2_untied", "gpt2_untied"},
                      Setup{"gpt2_dp2tp2spzero1", "gpt2", 2, 2, {"dp", "tp", "sp", "zero1"}},
                      Setup{"gpt2_untied_dp4zero3", "gpt2_untied", 4, 1, {"dp", "zero3"}},
                      Setup{"llama_dp2tp2sp", "llama", 2, 2, {"dp", "tp", "sp"}},
                      Setup{"tied_dp2tp2zero1", "tied", 2, 2, {"dp", "tp", "zero1"}},
                      Setup{"tied_dp4zero3", "tied", 4, 1, {"dp", "zero3"}},
                      Setup{"qwen3_dp2tp2spzero2", "qwen3", 2, 2, {"dp", "tp", "sp", "zero2"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hyperrun::testing
