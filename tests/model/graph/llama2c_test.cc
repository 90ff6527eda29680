// An imported model of llama2.c computes the same as llama2.c; other files are refused.
#include "runtime/model/checkpoint/llama2c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/llama2c_model.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

constexpr double kRoundOff = 1e-5;  // float32 against float64

std::filesystem::path put_model(const TemporaryDirectory& dir, const Llama2cModel& model, int version) {
  put_file(dir / "model.bin", model.file(version));
  return dir / "model.bin";
}

std::vector<float> tensor(const SafetensorsReader& file, const std::string& name) {
  const TensorView* view = file.find(name);
  EXPECT_NE(view, nullptr) << name;
  std::vector<float> values(view->data.size() / sizeof(float));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

struct Variant {
  const char* name;
  int version;
  bool shared;
  std::int32_t kv_heads;
};

std::ostream& operator<<(std::ostream& out, const Variant& v) { return out << v.name; }

class Llama2c : public ::testing::TestWithParam<Variant> {
 protected:
  Llama2cModel model() const {
    Llama2cModel model;
    model.shared_classifier = GetParam().shared;
    model.n_kv_heads = GetParam().kv_heads;
    model.fill(11);
    return model;
  }
};

// With the target at one position alone, the loss of a step is that token's negative log-probability.
TEST_P(Llama2c, ImportedItComputesTheSame) {
  const TemporaryDirectory dir;
  const Llama2cModel model = this->model();
  const Llama2cFile file(put_model(dir, model, GetParam().version));
  file.write_safetensors(dir / "model.safetensors");

  Job job;
  job.supernode.hbm = Bytes(std::int64_t{1} << 20);
  job.model = file.model();
  job.parallel.mesh = {{"dp", 1}};
  job.training.batch = 1;
  job.training.lr = job.training.min_lr = 0;
  job.training.steps = model.seq_len;
  const auto length = static_cast<std::size_t>(model.seq_len);
  std::vector<std::int32_t> ids(length), targets(length);
  std::mt19937 random(3);
  for (auto* tokens : {&ids, &targets})
    for (std::int32_t& token : *tokens) token = static_cast<std::int32_t>(random() % 66);

  RunOptions options;
  options.load_from = dir.path().string();
  options.batch = [&](auto step, auto, auto, auto, auto, auto* to_ids, auto* to_targets) {
    std::ranges::copy(ids, to_ids);
    std::fill_n(to_targets, length, -1);
    to_targets[step] = targets[static_cast<std::size_t>(step)];
  };
  const RunResult run = run_in_process(job, options);
  const auto logits = model.forward(ids);
  for (std::size_t p = 0; p < length; ++p) {
    double sum = 0;
    for (const double v : logits[p]) sum += std::exp(v);
    const double wanted = std::log(sum) - logits[p][static_cast<std::size_t>(targets[p])];
    EXPECT_NEAR(run.losses[p] * static_cast<double>(length), wanted, kRoundOff * (1 + std::abs(wanted))) << p;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Llama2c,
                         ::testing::Values(Variant{"Version0", 0, false, 2},
                                           Variant{"Version0Shared", 0, true, 4},
                                           Variant{"Version1", 1, false, 1},
                                           Variant{"Version1Shared", 1, true, 2}),
                         [](const auto& info) { return info.param.name; });

// The product of `weight` [rows, dim] and x, in double.
std::vector<double> project(const std::vector<float>& weight, const std::vector<double>& x) {
  std::vector<double> y(weight.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r)
    for (std::size_t c = 0; c < x.size(); ++c) y[r] += weight[r * x.size() + c] * x[c];
  return y;
}

// Turns each head like Hugging Face's Llama: pairs are elements i and i + half.
void turn_halves(std::span<double> x, std::size_t head_size, std::int64_t position) {
  const std::size_t half = head_size / 2;
  for (std::size_t head = 0; head < x.size(); head += head_size)
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) *
                           std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(head_size));
      double& a = x[head + i];
      double& b = x[head + half + i];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
}

TEST(Llama2cFile, AttentionScoresAreThoseOfTheFileInTheOtherConvention) {
  const TemporaryDirectory dir;
  Llama2cModel model;
  model.dim = 48;  // heads of 8 elements, queries of 6, keys of 3 heads
  model.n_heads = 6;
  model.n_kv_heads = 3;
  model.n_layers = 1;
  model.fill(5);
  Llama2cFile(put_model(dir, model, 0)).write_safetensors(dir / "model.safetensors");
  const SafetensorsReader imported(dir.path());
  const auto wq = tensor(imported, "model.layers.0.self_attn.q_proj.weight");
  const auto wk = tensor(imported, "model.layers.0.self_attn.k_proj.weight");

  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> x(48), y(48);
  for (double& v : x) v = normal(random);
  for (double& v : y) v = normal(random);
  const auto score = [](std::span<const double> q, std::span<const double> k, std::size_t head) {
    return std::inner_product(&q[8 * head], &q[8 * head] + 8, &k[8 * (head / 2)], 0.0);
  };
  for (const auto& [here, there] : {std::pair(0, 0), {7, 3}, {12, 0}}) {
    std::vector<double> q = project(model.wq, x), k = project(model.wk, y);
    turn_neighbours(q, 8, here), turn_neighbours(k, 8, there);
    std::vector<double> our_q = project(wq, x), our_k = project(wk, y);
    turn_halves(our_q, 8, here), turn_halves(our_k, 8, there);
    std::vector<double> wrong_q = project(model.wq, x), wrong_k = project(model.wk, y);
    turn_halves(wrong_q, 8, here), turn_halves(wrong_k, 8, there);
    for (std::size_t head = 0; head < 6; ++head) {
      EXPECT_NEAR(score(our_q, our_k, head), score(q, k, head), 1e-12);
      if (here != there) {
        EXPECT_GT(std::abs(score(wrong_q, wrong_k, head) - score(q, k, head)), 1e-3)
            << "weights as they were";
      }
    }
  }
}

// ---- refusals

template <class T>
std::string with(std::string file, std::size_t at, T value) {
  std::memcpy(&file[at], &value, sizeof value);
  return file;
}

TEST(Llama2cFile, WhatIsNoModelIsRefusedByName) {
  Llama2cModel model;
  model.fill(1);
  const std::string v0 = model.file(0), v1 = model.file(1);
  const auto word = [](std::int32_t value) { return value; };
  struct Bad {
    std::string content, place, cause;
  };
  const Bad kBad[] = {
      {"", "model.bin", "truncated: the header alone has 28 bytes, the file 0"},
      {v0.substr(0, 27), "model.bin", "truncated"},
      {v1.substr(0, 255), "model.bin", "truncated: the header alone has 256"},
      {v0.substr(0, v0.size() - 1), "model.bin",
       "truncated: a model of its header has " + std::to_string(v0.size())},
      {v1.substr(0, 300), "model.bin", "truncated"},
      {v0 + "x", "model.bin", std::to_string(v0.size() + 1)},
      {v1 + "abcd", "model.bin", std::to_string(v1.size() + 4)},
      {"GGUF" + v0, "model.bin: dim", "no model of llama2.c"},
      {with(v1, 4, word(2)), "model.bin", "quantized to int8"},
      {with(v1, 4, word(3)), "model.bin", "version 3"},
      {with(v0, 0, word(0)), "model.bin: dim", "is 0"},
      {with(v0, 4, word(-40)), "model.bin: hidden_dim", "is -40"},
      {with(v0, 8, word(1 << 30)), "model.bin: n_layers", "is 1073741824"},
      {with(v0, 12, word(3)), "model.bin: n_heads", "3 heads do not divide dim 16"},
      {with(v0, 12, word(16)), "model.bin: n_heads", "even"},
      {with(v0, 16, word(3)), "model.bin: n_kv_heads", "3 does not divide the 4 heads"},
      {with(v0, 20, std::numeric_limits<std::int32_t>::min()), "model.bin: vocab_size", "is 0"},
      {with(v1, 28, word(-66)), "model.bin: vocab_size", "is -66"},
      {with(v0, 24, word(0)), "model.bin: seq_len", "is 0"},
      {with(v0, 24, word(15)), "model.bin", "a model of its header has"},
      {with(v1, 36, '\1'), "model.bin", "a model of its header has"},
  };
  const TemporaryDirectory dir;
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.cause);
    put_file(dir / "model.bin", bad.content);
    EXPECT_ERROR(Llama2cFile(dir / "model.bin"), Code::kBadCheckpoint, bad.place, bad.cause);
  }
  EXPECT_ERROR(Llama2cFile(dir / "absent.bin"), Code::kMissingFile, "absent.bin", "no such");
}

// Any damaged header ends with an error, and takes no memory for data that does not exist.
TEST(Llama2cFile, DamagedHeaders) {
  Llama2cModel model;
  model.fill(1);
  const TemporaryDirectory dir;
  std::mt19937 random(9);
  for (int i = 0; i < 400; ++i) {
    std::string content = model.file(i % 2).substr(0, 2000);
    for (int k = 0; k < 3; ++k) content[random() % 38] = static_cast<char>(random());
    put_file(dir / "model.bin", content);
    EXPECT_THROW(Llama2cFile(dir / "model.bin"), Error);
  }
}

}  // namespace
}  // namespace hyperrun::testing
