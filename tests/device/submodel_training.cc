#include "tests/device/submodel_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/compile/learning_rate.h"
#include "runtime/inference/samples_io.h"
#include "runtime/inference/vectors_io.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"
#include "tests/support/samples.h"

namespace hyperrun::testing {
namespace {

constexpr int kLayers = 3;

// Sequences [first, first + count) of all.
Samples rows_of(const Samples& all, std::int64_t first, std::int64_t count) {
  const auto cut = [&]<class T>(const std::vector<T>& v) {
    return v.empty()
               ? v
               : std::vector<T>(v.begin() + first * all.tokens, v.begin() + (first + count) * all.tokens);
  };
  Samples part{
      .tokens = all.tokens, .ids = cut(all.ids), .targets = cut(all.targets), .weight = cut(all.weight)};
  for (const auto& rows : all.features) part.features.push_back(cut(rows));
  return part;
}

}  // namespace

Job text_job(const std::string& layout, int micro_batches) {
  Job job = small_job(layout);
  set_layers(job, kLayers);
  job.training.micro_batches = micro_batches;
  job.training.steps = kSteps;
  job.training.clip_norm = 0;
  return job;
}

Samples plain_text(const Job& job, std::int64_t step) {
  Samples s = made_up_samples(job, step);
  s.advantage.clear(), s.behaviour.clear(), s.reference.clear();
  for (std::size_t i = 0; i < s.ids.size(); ++i) {
    s.targets[i] = i + 1 < s.ids.size() ? s.ids[i + 1] : 7;
    s.weight[i] = 1.0F / static_cast<float>(s.ids.size());
  }
  return s;
}

std::vector<double> update_together(const std::vector<SubmodelDevices*>& parts, const TrainingSpec& training,
                                    std::int64_t step) {
  std::vector<double> squares(parts.size());
  for (std::size_t p = 0; training.clip_norm > 0 && p < parts.size(); ++p)
    squares[p] = parts[p]->run("norm", {.step = step}).scalars.at("grad_squares");
  std::vector<double> norms;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    double others = 0;
    for (std::size_t o = 0; o < parts.size(); ++o) others += o == p ? 0 : squares[o];
    const auto result =
        parts[p]->run("update", {.step = step, .lr = learning_rate(training, step), .other_squares = others});
    EXPECT_EQ(result.scalars.size(), 1U) << "not what another Program has made";
    norms.push_back(result.scalars.at("grad_norm"));
  }
  return norms;
}

std::vector<SubmodelSpec> parts_of(const Job& job, const std::vector<int>& cuts, std::int64_t slots) {
  std::vector<SubmodelSpec> parts;
  for (std::size_t i = 0; i <= cuts.size(); ++i)
    parts.push_back({.job = job,
                     .first_layer = i == 0 ? 0 : cuts[i - 1],
                     .end_layer = i < cuts.size() ? cuts[i] : -1,
                     .slots = slots});
  return parts;
}

std::vector<Samples> micro_batches_of(const Job& job, const Samples& all) {
  const std::int64_t each = job.training.batch / job.training.micro_batches;
  std::vector<Samples> list;
  for (std::int64_t first = 0; first < all.sequences(); first += each)
    list.push_back(samples_from_bytes(to_bytes(rows_of(all, first, each))));
  return list;
}

RunResult trained_whole(const Job& job) {
  RunOptions options;
  options.batch = [&](auto step, auto first, auto count, auto from, auto length, auto* ids, auto* targets) {
    const Samples samples = plain_text(job, step);
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t at = (first + s) * samples.tokens + from;
      std::copy_n(&samples.ids[static_cast<std::size_t>(at)], length, ids + s * length);
      std::copy_n(&samples.targets[static_cast<std::size_t>(at)], length, targets + s * length);
    }
  };
  return run_in_process(job, options);
}

Trained trained_in_parts(const Job& job, const std::vector<SubmodelSpec>& parts) {
  Text text(parts);
  Trained result;
  for (std::int64_t step = 0; step < job.training.steps; ++step) {
    result.losses.push_back(text.passes(micro_batches_of(job, plain_text(job, step))));
    for (const double norm : text.update(job.training, step)) result.grad_norms.push_back(norm);
  }
  result.weights = text.weights();
  return result;
}

void expect_alike(const RunResult& whole, const Trained& parts, double losses, double weights,
                  const std::string& what) {
  ASSERT_EQ(whole.losses.size(), parts.losses.size()) << what;
  for (std::size_t s = 0; s < parts.losses.size(); ++s)
    EXPECT_NEAR(parts.losses[s], whole.losses[s], losses * whole.losses[s]) << what << ", step " << s;
  for (const auto& [name, values] : whole.weights) {
    // A bias added to all keys changes no softmax: but for rounding its gradient is zero.
    if (weights > 0 && name.find("wk.bias") != std::string::npos) continue;
    ASSERT_TRUE(parts.weights.contains(name)) << what << ": " << name;
    EXPECT_LE(relative(values, parts.weights.at(name)), weights) << what << ": " << name;
  }
}

Job clipped(Job job) {
  job.training.clip_norm = 0;
  job.training.clip_norm = trained_whole(job).grad_norms[0] / 2;
  return job;
}

SubmodelSpec encoder_spec(const std::string& layout, std::int64_t slots) {
  Job job = small_job(layout);
  ModelSpec& m = job.model;
  const std::int32_t features = m.hidden;
  m = {.name = "encoder", .layers = 2, .hidden = 32, .heads = 4, .kv_heads = 4, .head_dim = 8, .ffn = 48};
  m.sequence = static_cast<std::int32_t>(kTokens);
  m.inputs = static_cast<std::int32_t>(kWidth);
  m.features = features;
  job.training.batch = static_cast<std::int32_t>(kItems);
  job.training.clip_norm = 0;
  return {.job = job, .slots = slots};
}

InputVectors made_up_vectors(std::int64_t seed, std::int64_t items) {
  InputVectors v{items, kTokens, kWidth, {}};
  for (std::int64_t i = 0; i < items * kTokens * kWidth; ++i)
    v.values.push_back(std::sin(0.37F * static_cast<float>(i + 101 * seed)) +
                       0.3F * std::cos(1.7F * static_cast<float>(i * seed)));
  return vectors_from_bytes(to_bytes(v));
}

Samples with_features(Samples s) {
  std::vector<std::int32_t> rows(s.ids.size(), -1);
  const std::int64_t sequences = s.sequences();
  for (std::int64_t item = 0; item < kItems; ++item)
    for (std::int64_t t = 0; t < kTokens; ++t)
      if (item + 1 < kItems || t + 1 < kTokens)
        rows[static_cast<std::size_t>(item % sequences * s.tokens + item / sequences * kTokens + t + 2)] =
            static_cast<std::int32_t>(item * kTokens + t);
  s.features = {rows};
  return s;
}

SubmodelSpec reader_spec(const std::string& layout, std::int64_t slots) {
  SubmodelSpec spec{.job = text_job(layout, 2), .slots = slots};
  spec.features = {{"pictures", kItems, kTokens}};
  return spec;
}

void expect_alike(const Trained& expected, const Trained& actual, double losses, double weights,
                  const std::string& what) {
  expect_alike(RunResult{.losses = expected.losses, .weights = expected.weights}, actual, losses, weights,
               what);
}

Trained Omni::train(const std::vector<std::vector<int>>& slices) {
  Trained result;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    double loss = 0;
    std::int64_t m = 0;
    for (const Samples& part : micro_batches_of(job_, plain_text(job_, step)))
      loss += pass(with_features(part), made_up_vectors(7 * step + m), m, slices), ++m;
    result.losses.push_back(loss);
    for (const double norm : update(step)) result.grad_norms.push_back(norm);
  }
  result.weights = encoder_.state(TensorClass::kWeight);
  for (auto& [name, values] : text_.state(TensorClass::kWeight))
    result.weights["text." + name] = std::move(values);
  return result;
}

}  // namespace hyperrun::testing
