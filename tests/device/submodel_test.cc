// Parts of a model by themselves: together they do what the whole does, whatever their layouts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/compile/schedule.h"
#include "runtime/inference/samples_io.h"
#include "runtime/inference/vectors_io.h"
#include "runtime/sim/simulate.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/jobs.h"
#include "tests/support/relative.h"
#include "tests/support/samples.h"
#include "tests/support/submodel_devices.h"

namespace hyperrun::testing {
namespace {

constexpr int kLayers = 3, kSteps = 3;

Job text_job(const std::string& layout, int micro_batches) {
  Job job = small_job(layout);
  set_layers(job, kLayers);
  job.training.micro_batches = micro_batches;
  job.training.steps = kSteps;
  job.training.clip_norm = 0;
  return job;
}

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

// A text whose positions all have the same weight, so that its loss is the mean.
Samples plain_text(const Job& job, std::int64_t step) {
  Samples s = made_up_samples(job, step);
  s.advantage.clear(), s.behaviour.clear(), s.reference.clear();
  for (std::size_t i = 0; i < s.ids.size(); ++i) {
    s.targets[i] = i + 1 < s.ids.size() ? s.ids[i + 1] : 7;
    s.weight[i] = 1.0F / static_cast<float>(s.ids.size());
  }
  return s;
}

// Where gradients are clipped, by the norm of all parts'. Returns the norms that parts report.
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

// Parts of a text model in a row; what goes between their ports is copied here.
class Text {
 public:
  // `cuts`: the first layers of the parts, and the end. `layouts`: one a part, of one number of devices each.
  Text(const std::vector<SubmodelSpec>& parts) {
    for (const SubmodelSpec& spec : parts) parts_.emplace_back(spec);
    slots_ = parts.front().slots;
  }

  SubmodelDevices& part(std::size_t i) { return parts_[i]; }

  // As many micro-batches under way as ports have slots. Returns the sum of their losses.
  double passes(const std::vector<Samples>& micro_batches) {
    double loss = 0;
    const std::int64_t n = std::ssize(micro_batches);
    for (std::int64_t first = 0; first < n; first += slots_) {
      const std::int64_t end = std::min(first + slots_, n);
      for (std::int64_t m = first; m < end; ++m)
        forward(micro_batches[static_cast<std::size_t>(m)], m - first);
      for (std::int64_t m = first; m < end; ++m)
        loss += backward(micro_batches[static_cast<std::size_t>(m)], m - first);
    }
    return loss;
  }

  void forward(const Samples& samples, std::int64_t slot) {
    for (std::size_t p = 0; p + 1 < parts_.size(); ++p) {
      parts_[p].run("forward", {.samples = &samples, .slot = slot});
      parts_[p + 1].write_slot("port.in", slot, parts_[p].read_slot("port.out", slot));
    }
  }

  double backward(const Samples& samples, std::int64_t slot) {
    double loss = 0;
    for (std::size_t p = parts_.size(); p-- > 0;) {
      const auto result = parts_[p].run("backward", {.samples = &samples, .slot = slot});
      if (p + 1 == parts_.size()) loss = result.scalars.at("loss");
      if (p > 0) parts_[p - 1].write_slot("port.out.grad", slot, parts_[p].read_slot("port.in.grad", slot));
    }
    return loss;
  }

  std::vector<float> score(const Samples& samples) {
    forward(samples, 0);
    return parts_.back().run("score", {.samples = &samples}).logp;
  }

  // The norms of gradients that parts report.
  std::vector<double> update(const TrainingSpec& training, std::int64_t step) {
    std::vector<SubmodelDevices*> parts;
    for (SubmodelDevices& part : parts_) parts.push_back(&part);
    return update_together(parts, training, step);
  }

  std::map<std::string, std::vector<float>> weights() {
    std::map<std::string, std::vector<float>> all;
    for (SubmodelDevices& part : parts_) all.merge(part.state(TensorClass::kWeight));
    return all;
  }

 private:
  std::deque<SubmodelDevices> parts_;
  std::int64_t slots_ = 1;
};

// Cut behind these layers.
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

// What the whole model does with the same texts.
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

struct Trained {
  std::vector<double> losses, grad_norms;
  std::map<std::string, std::vector<float>> weights;
};

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

// Losses are sums of the same terms, which are rounded once a micro-batch, and of the weights of texts.
void expect_alike(const RunResult& whole, const Trained& parts, double losses, double weights,
                  const std::string& what) {
  ASSERT_EQ(whole.losses.size(), parts.losses.size()) << what;
  for (std::size_t s = 0; s < parts.losses.size(); ++s)
    EXPECT_NEAR(parts.losses[s], whole.losses[s], losses * whole.losses[s]) << what << ", step " << s;
  for (const auto& [name, values] : whole.weights) {
    // What is added to all keys changes no softmax: but for rounding this gradient is zero.
    if (weights > 0 && name.find("wk.bias") != std::string::npos) continue;
    ASSERT_TRUE(parts.weights.contains(name)) << what << ": " << name;
    EXPECT_LE(relative(values, parts.weights.at(name)), weights) << what << ": " << name;
  }
}

// The same products in the same order, in float32 with weights that are a power of two: the same bits. Where
// gradients begin at zero and are added to, -0 becomes 0, which changes nothing.
TEST(Submodel, ATextModelByItselfDoesWhatTheWholeDoes) {
  for (const int micro_batches : {1, 4}) {
    const Job job = text_job("dp:1", micro_batches);
    expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {}, 1)), 1e-6, 0,
                 std::to_string(micro_batches) + " micro-batches");
  }
}

TEST(Submodel, CutIntoPartsItDoesTheSame) {
  const Job job = text_job("dp:1", 4);
  const RunResult whole = trained_whole(job);
  for (const std::vector<int>& cuts : {std::vector<int>{1}, std::vector<int>{1, 2}})
    for (const std::int64_t slots : {1, 2, 3})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, slots)), 1e-6, 0,
                   std::to_string(cuts.size()) + " cuts, " + std::to_string(slots) + " slots");
}

TEST(Submodel, UnderEveryLayout) {
  for (const std::string layout :
       {"dp:2", "tp:2", "dp:2 tp:2 sp zero1", "dp:2 zero2", "dp:2 zero3", "cp:2", "tpx:2 tpy:2"}) {
    const Job job = text_job(layout, 2);
    const RunResult whole = trained_whole(job);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{2}})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, 2)), 1e-5, 1e-4,
                   layout + ", " + std::to_string(cuts.size()) + " cuts");
  }
}

// What is rounded to bfloat16 is rounded at the same places.
TEST(Submodel, InBfloat16) {
  for (const std::string layout : {"dp:1 bf16", "dp:2 tp:2 sp zero1 bf16"}) {
    const Job job = text_job(layout, 2);
    const RunResult whole = trained_whole(job);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1, 2}})
      expect_alike(whole, trained_in_parts(job, parts_of(job, cuts, 2)), 1e-3, 2e-3,
                   layout + ", " + std::to_string(cuts.size()) + " cuts");
  }
}

// To half the norm that the first step has: each update is clipped.
Job clipped(Job job) {
  job.training.steps = 6;
  job.training.clip_norm = 0;
  job.training.clip_norm = trained_whole(job).grad_norms[0] / 2;
  return job;
}

// The squares of parts are rounded to float32 one by one, which is all that differs.
TEST(Submodel, IsClippedByTheNormOfTheWhole) {
  for (const auto& [layout, losses, weights] : {std::tuple{"dp:1", 1e-6, 1e-5},
                                                {"dp:2", 1e-6, 1e-5},
                                                {"dp:2 zero1", 1e-6, 1e-5},
                                                {"dp:2 zero2", 1e-5, 1e-4},
                                                {"dp:2 zero3", 1e-5, 1e-4},
                                                {"dp:2 tp:2 sp zero1", 1e-5, 1e-4},
                                                {"tpx:2 tpy:2", 1e-5, 1e-4},
                                                {"dp:2 zero1 bf16", 1e-3, 2e-3}}) {
    const Job job = clipped(text_job(layout, 2));
    const RunResult whole = trained_whole(job);
    EXPECT_GT(whole.grad_norms[0], job.training.clip_norm);
    for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1}, std::vector<int>{1, 2}}) {
      const std::string what = std::string(layout) + ", " + std::to_string(cuts.size()) + " cuts";
      const Trained parts = trained_in_parts(job, parts_of(job, cuts, 2));
      expect_alike(whole, parts, losses, weights, what);
      const std::size_t count = cuts.size() + 1;
      for (std::size_t i = 0; i < parts.grad_norms.size(); ++i)
        EXPECT_NEAR(parts.grad_norms[i], whole.grad_norms[i / count],
                    30 * losses * whole.grad_norms[i / count])
            << what << ", part " << i % count;
    }
  }
}

TEST(Submodel, PartsMayLieOtherwise) {
  const Job job = text_job("dp:1", 2);
  std::vector<SubmodelSpec> parts = parts_of(job, {1, 2}, 1);
  parts[0].job = text_job("dp:2 zero1", 2);
  parts[1].job = text_job("tp:2 sp", 2);
  parts[2].job = text_job("dp:2 tp:2", 2);
  expect_alike(trained_whole(job), trained_in_parts(job, parts), 1e-5, 1e-4, "three layouts");
}

TEST(Submodel, OfOtherModels) {
  for (const bool gpt2 : {true, false}) {
    Job job = text_job("dp:2", 2);
    gpt2 ? become_gpt2(job) : become_deepseek(job);
    job.model.mtp = {};
    job.model.tied_head = false;
    if (!gpt2) job.model.experts.aux_loss = 0.01;
    expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {2}, 2)), 1e-5, 1e-4,
                 gpt2 ? "gpt2" : "deepseek");
  }
}

TEST(Submodel, RecomputesWhatTheJobDoesNotKeep) {
  Job job = text_job("tp:2 sp", 2);
  job.training.recompute = {{"full", 0, 1}, {"selective", 2, 2}};
  expect_alike(trained_whole(job), trained_in_parts(job, parts_of(job, {1}, 1)), 1e-5, 1e-4, "recomputed");
}

TEST(Submodel, ScoresAsItsLossSays) {
  const Job job = text_job("dp:2 tp:2 sp", 2);
  for (const std::vector<int>& cuts : {std::vector<int>{}, std::vector<int>{1}}) {
    Text text(parts_of(job, cuts, 1));
    Samples samples = made_up_samples(job, 0);
    samples.advantage.clear(), samples.behaviour.clear(), samples.reference.clear();
    for (const Samples& part : micro_batches_of(job, samples)) {
      const std::vector<float> logp = text.score(part);
      double loss = 0;
      for (std::size_t i = 0; i < logp.size(); ++i) {
        EXPECT_EQ(logp[i] == 0, part.targets[i] < 0) << i;
        loss -= static_cast<double>(part.weight[i]) * static_cast<double>(logp[i]);
      }
      EXPECT_NEAR(text.passes({part}), loss, 1e-5 * loss);
    }
  }
}

// --- encoders -----------------------------------------------------------------------------------------

constexpr std::int64_t kItems = 4, kTokens = 6, kWidth = 10;

SubmodelSpec encoder_spec(const std::string& layout, std::int64_t slots = 1) {
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

InputVectors made_up_vectors(std::int64_t seed, std::int64_t items = kItems) {
  InputVectors v{items, kTokens, kWidth, {}};
  for (std::int64_t i = 0; i < items * kTokens * kWidth; ++i)
    v.values.push_back(std::sin(0.37F * static_cast<float>(i + 101 * seed)) +
                       0.3F * std::cos(1.7F * static_cast<float>(i * seed)));
  return vectors_from_bytes(to_bytes(v));
}

// Each item stands in one of the sequences, token behind token; the last token of the last item nowhere.
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

SubmodelSpec reader_spec(const std::string& layout, std::int64_t slots = 1) {
  SubmodelSpec spec{.job = text_job(layout, 2), .slots = slots};
  spec.features = {{"pictures", kItems, kTokens}};
  return spec;
}

// An encoder and the text model that reads it, both as one part.
class Omni {
 public:
  Omni(const SubmodelSpec& encoder, const SubmodelSpec& text)
      : encoder_(encoder), text_(text), job_(text.job) {}

  SubmodelDevices& encoder() { return encoder_; }
  SubmodelDevices& text() { return text_; }

  // `slices`: of the encoder's devices, each of which takes its items alone; none: all at once.
  double pass(const Samples& samples, const InputVectors& vectors, std::int64_t slot = 0,
              const std::vector<std::vector<int>>& slices = {{}}) {
    for (const auto& devices : slices) encoder_.run("forward", {.vectors = &vectors, .slot = slot}, devices);
    text_.write_slot("port.pictures", slot, encoder_.read_slot("port.out", slot));
    const double loss = text_.run("backward", {.samples = &samples, .slot = slot}).scalars.at("loss");
    encoder_.write_slot("port.out.grad", slot, text_.read_slot("port.pictures.grad", slot));
    for (const auto& devices : slices) encoder_.run("backward", {.vectors = &vectors, .slot = slot}, devices);
    return loss;
  }

  // The norms of their gradients.
  std::vector<double> update(std::int64_t step) {
    return update_together({&encoder_, &text_}, job_.training, step);
  }

  Trained train(const std::vector<std::vector<int>>& slices = {{}}) {
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

 private:
  SubmodelDevices encoder_, text_;
  Job job_;
};

void expect_alike(const Trained& expected, const Trained& actual, double losses, double weights,
                  const std::string& what) {
  expect_alike(RunResult{.losses = expected.losses, .weights = expected.weights}, actual, losses, weights,
               what);
}

TEST(Encoder, LearnsUnderEveryLayoutWhatOneDeviceLearns) {
  const Trained one = Omni(encoder_spec("dp:1", 2), reader_spec("dp:1", 2)).train();
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const auto& [encoder, text] : {std::pair{"dp:2", "dp:1"},
                                      {"dp:4", "dp:2"},
                                      {"tp:2", "tp:2 sp"},
                                      {"dp:2 tp:2", "dp:2 tp:2 sp zero1"},
                                      {"dp:2 zero1", "cp:2"},
                                      {"dp:2 tp:2 sp zero3", "dp:2 zero3"},
                                      {"tpx:2 tpy:2", "tpx:2 tpy:2"},
                                      {"dp:1", "ring:2"}})
    expect_alike(one, Omni(encoder_spec(encoder, 2), reader_spec(text, 2)).train(), 1e-5, 1e-4,
                 std::string(encoder) + " and " + text);
}

// Each rounding loses up to 2^-8, at random.
TEST(Encoder, InBfloat16) {
  const Trained one = Omni(encoder_spec("dp:1", 2), reader_spec("dp:1", 2)).train();
  for (const std::string layout : {"dp:1 bf16", "dp:2 tp:2 zero1 bf16"}) {
    const Trained rounded = Omni(encoder_spec(layout, 2), reader_spec(layout, 2)).train();
    expect_alike(Trained{.losses = one.losses}, rounded, 0x1p-8, 0, layout);
    for (std::size_t i = 0; i < one.grad_norms.size(); ++i)
      EXPECT_NEAR(rounded.grad_norms[i], one.grad_norms[i], 0x1p-4 * one.grad_norms[i]) << layout << " " << i;
  }
}

TEST(Encoder, EveryTokenSeesTheOthersOfItsItem) {
  SubmodelDevices encoder(encoder_spec("dp:1"));
  InputVectors vectors = made_up_vectors(1);
  const auto first_tokens = [&] {
    encoder.run("forward", {.vectors = &vectors});
    const std::vector<float> out = encoder.read("port.out");
    const std::int64_t each = std::ssize(out) / kItems, width = each / kTokens;
    return std::pair(std::vector(out.begin(), out.begin() + width),
                     std::vector(out.begin() + each, out.begin() + each + width));
  };
  const auto before = first_tokens();
  vectors.values[static_cast<std::size_t>(kTokens * kWidth - 1)] += 1;  // of the first item's last token
  const auto after = first_tokens();
  EXPECT_NE(before.first, after.first);
  EXPECT_EQ(before.second, after.second);
}

// A derivative along the gradient is its norm. In float32 the loss, of some units, has some 1e-7 of itself as
// noise, of which the difference of 5e-4 makes 1e-3; a longer step would leave where the loss is straight.
void expect_derivative(const std::string& what, std::vector<float> at, const std::vector<float>& gradient,
                       const std::function<double(const std::vector<float>&)>& loss) {
  ASSERT_EQ(at.size(), gradient.size()) << what;
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares), step = 2.5e-4 / norm;
  ASSERT_GT(norm, 1e-5) << what;
  const auto moved = [&](double by) {
    std::vector<float> there = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      there[i] += static_cast<float>(by / norm * static_cast<double>(gradient[i]));
    return loss(there);
  };
  EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step), norm, 1e-2 * norm) << what;
}

TEST(Encoder, GradientsAreTheDerivativesOfTheTextsLoss) {
  SubmodelSpec encoder = encoder_spec("dp:1");
  encoder.job.training.init_std = 0.3;  // else attention is nearly the same for all
  Omni omni(encoder, reader_spec("dp:1"));
  const Samples samples =
      with_features(micro_batches_of(text_job("dp:1", 2), plain_text(text_job("dp:1", 2), 0))[0]);
  const InputVectors vectors = made_up_vectors(3);
  omni.pass(samples, vectors);
  std::map<std::string, std::vector<float>> gradients;
  const std::vector<std::string> weights{
      "patches", "positions", "layers.0.attention.wq", "layers.1.ffn.up.bias", "final_norm.bias", "features"};
  for (const std::string& name : weights) gradients[name] = omni.encoder().sum(name + ".grad");
  const std::vector<float> of_port = omni.text().read_slot("port.pictures.grad", 0);
  const std::vector<float> port = omni.text().read_slot("port.pictures", 0);
  expect_derivative("port", port, of_port, [&](const std::vector<float>& there) {
    omni.text().write_slot("port.pictures", 0, there);
    return omni.text().run("backward", {.samples = &samples}).scalars.at("loss");
  });
  for (const std::string& name : weights) {
    const std::vector<float> at = omni.encoder().read(name);
    expect_derivative(name, at, gradients.at(name), [&](const std::vector<float>& there) {
      omni.encoder().write(name, there);
      return omni.pass(samples, vectors);
    });
    omni.encoder().write(name, at);
  }
  // What no text holds has no gradient.
  for (std::size_t i = of_port.size() - 64; i < of_port.size(); ++i) EXPECT_EQ(of_port[i], 0) << i;
}

std::int64_t collectives(const Program& program) {
  return std::ranges::count_if(
      program.instrs, [](const Instr& i) { return std::holds_alternative<instr::Collective>(i.op); });
}

TEST(Encoder, ReplicasTakeTheirItemsAlone) {
  Omni omni(encoder_spec("dp:4", 2), reader_spec("dp:1", 2));
  const Plan& plan = omni.encoder().plan();
  for (const char* program : {"forward", "backward"})
    EXPECT_EQ(collectives(plan.roles[0].program(program)), 0) << program;
  EXPECT_EQ(replicas(plan, {"forward", "backward"}), 4);
  EXPECT_EQ(replicas(plan, {"forward", "backward", "update"}), 1);
  EXPECT_EQ(replicas(omni.text().plan(), {"backward"}), 1);

  const Trained at_once = Omni(encoder_spec("dp:4", 2), reader_spec("dp:1", 2)).train();
  expect_alike(at_once, omni.train({{2}, {0}, {3}, {1}}), 0, 0, "one by one");
}

TEST(Encoder, ReplicasOfSeveralDevices) {
  const auto spec = [] { return encoder_spec("dp:2 tp:2", 2); };
  Omni omni(spec(), reader_spec("dp:1", 2));
  const Plan& plan = omni.encoder().plan();
  EXPECT_EQ(axes_of_replicas(plan, {"forward", "backward"}), AxisList{plan.mesh.find("dp")});
  EXPECT_EQ(replicas(Omni(encoder_spec("dp:2 zero2"), reader_spec("dp:1")).encoder().plan(), {"backward"}),
            1);
  const Trained at_once = Omni(spec(), reader_spec("dp:1", 2)).train();
  expect_alike(at_once, omni.train({{2, 3}, {0, 1}}), 0, 0, "one by one");
}

TEST(Encoder, ItemsThatAreNotThereAreZeros) {
  SubmodelDevices encoder(encoder_spec("dp:2"));
  InputVectors few = made_up_vectors(1, 3), full = made_up_vectors(1, 3);
  full.items = kItems;
  full.values.resize(static_cast<std::size_t>(kItems * kTokens * kWidth));
  encoder.run("forward", {.vectors = &full});
  const std::vector<float> expected = encoder.read("port.out");
  encoder.write("port.out", std::vector<float>(expected.size(), 9));
  encoder.run("forward", {.vectors = &few});
  EXPECT_EQ(encoder.read("port.out"), expected);
}

// Clipping itself must do no more than scale all gradients by one factor.
TEST(Encoder, IsClippedWithItsText) {
  const auto trained = [](const std::string& encoder, const std::string& text, double clip_norm,
                          const std::vector<std::vector<int>>& slices) {
    SubmodelSpec of_encoder = encoder_spec(encoder, 2), of_text = reader_spec(text, 2);
    of_encoder.job.training.clip_norm = of_text.job.training.clip_norm = clip_norm;
    return Omni(of_encoder, of_text).train(slices);
  };
  const Trained free = trained("dp:1", "dp:1", 0, {{}});
  const double norm = std::hypot(free.grad_norms[0], free.grad_norms[1]);
  const Trained one = trained("dp:1", "dp:1", norm / 2, {{}});
  for (const int part : {0, 1})
    EXPECT_NEAR(one.grad_norms[static_cast<std::size_t>(part)], norm, 1e-6 * norm);
  expect_alike(one, trained("dp:4", "tp:2 sp", norm / 2, {{2}, {0}, {3}, {1}}), 1e-5, 1e-4, "replicas");
  expect_alike(one, trained("dp:2 tp:2 zero1", "dp:2 zero1", norm / 2, {{}}), 1e-5, 1e-4, "zero1");
}

// What lies beyond HBM comes and goes, and changes nothing. Of the optimizer's state, half of all, no pass
// has need.
TEST(Submodel, WithStateBeyondHbm) {
  for (const Job& job : {text_job("dp:1", 2), clipped(text_job("dp:1", 2))}) {
    const RunResult whole = trained_whole(job);
    std::vector<SubmodelSpec> parts = parts_of(job, {1}, 1);
    for (SubmodelSpec& spec : parts) {
      spec.job.supernode.hbm = compile_submodel(spec).plan.peak() / 5 * 3;
      spec.job.supernode.pool = Bytes(std::int64_t{64} << 20);
      EXPECT_ERROR(check_fits(compile_submodel(spec).plan, spec.job.supernode), Code::kDoesNotFit, "", "");
      spec.job.memory = {"hyperoffload", "pool", {}};
      EXPECT_GT(compile_submodel(spec).plan.peak(Tier::kPool).value, 0);
    }
    expect_alike(whole, trained_in_parts(job, parts), 1e-6, job.training.clip_norm > 0 ? 1e-5 : 0,
                 "offloaded");
  }
}

// --- plans ------------------------------------------------------------------------------------------

TEST(SubmodelPlan, ListsItsPortsAsTheyLie) {
  const auto layout_of = [](const SubmodelSpec& spec, const std::string& port) {
    const Plan plan = compile_submodel(spec).plan;
    for (const StateTensor& t : plan.roles[0].state)
      if (t.name == port) return to_string(t.layout, plan.mesh);
    return std::string("absent");
  };
  for (const char* port : {"port.in", "port.in.grad", "port.out", "port.out.grad"}) {
    const auto middle = [](const std::string& layout) { return parts_of(text_job(layout, 1), {1, 2}, 2)[1]; };
    EXPECT_EQ(layout_of(middle("dp:2 tp:2 sp"), port), "[-, dp, tp, -]") << port;
    EXPECT_EQ(layout_of(middle("dp:2 cp:2 bf16"), port), "[-, dp, cp, -]") << port;
    EXPECT_EQ(layout_of(middle("tpx:2 tpy:2"), port), "[-, -, tpx, tpy]") << port;
  }
  for (const char* port : {"port.out", "port.out.grad"})
    EXPECT_EQ(layout_of(encoder_spec("dp:2 tp:2 sp"), port), "[-, dp, -, -]") << port;
  for (const char* port : {"port.pictures", "port.pictures.grad"})
    EXPECT_EQ(layout_of(reader_spec("dp:2 tp:2 sp"), port), "[-, -, -, -]") << port;
}

std::int64_t reductions(const Program& program) {
  return std::ranges::count_if(program.instrs, [](const Instr& i) {
    const auto* c = std::get_if<instr::Collective>(&i.op);
    return c != nullptr && c->kind != instr::CollectiveKind::kAllGather;
  });
}

// What gradients come to lies where they were added up, where it is as large.
TEST(SubmodelPlan, GradientsAreExchangedOnceAndInPlace) {
  for (const std::string layout : {"dp:2", "dp:2 zero1", "dp:2 tp:2 sp"}) {
    Job job = text_job(layout, 2);
    job.training.clip_norm = 1;
    const Plan plan = compile_submodel(parts_of(job, {1}, 1)[1]).plan;
    const Program &norm = plan.roles[0].program("norm"), &update = plan.roles[0].program("update");
    EXPECT_GT(reductions(norm), 0) << layout;
    EXPECT_EQ(reductions(update), 0) << layout;
    Bytes sums{}, others{};
    for (const Buffer& b : norm.buffers)
      if (b.state) (b.category == Category::kGradients ? sums : others) += b.bytes;
    if (layout.ends_with("zero1"))
      EXPECT_NEAR(static_cast<double>(others.value), static_cast<double>(sums.value) / 2, 64);
    else
      EXPECT_EQ(others, Bytes(4)) << layout << ": the squares";
  }
  for (const Program& p : compile_submodel({.job = text_job("dp:2", 2)}).plan.roles[0].programs)
    EXPECT_NE(p.name, "norm") << "without clipping";
}

TEST(SubmodelPlan, IsSimulated) {
  for (const SubmodelSpec& spec : {encoder_spec("dp:2 tp:2"), reader_spec("dp:2 tp:2 sp zero1 bf16"),
                                   parts_of(text_job("dp:2", 2), {1, 2}, 2)[1]}) {
    const Plan plan = compile_submodel(spec).plan;
    const Topology topology = Topology::one_host(spec.job.supernode.devices);
    for (const Program& program : plan.roles[0].programs) {
      const SimResult r = simulate(plan, program.name, spec.job.supernode, topology);
      EXPECT_GT(r.stats(0).end, 0) << program.name;
      EXPECT_EQ(durations(plan, program.name, spec.job.supernode, topology, 0).size(), program.instrs.size());
    }
  }
}

// A part has some of the tensors that the model's rules name; a whole model all.
TEST(SubmodelPlan, RulesMayNameWhatAnotherPartHas) {
  Job job = text_job("dp:2", 2);
  job.parallel.rules = {{.tensor = "head", .dims = {{"hidden", {"dp"}}}, .origin = "job:7"}};
  for (const SubmodelSpec& part : parts_of(job, {1}, 1)) compile_submodel(part);
  job.parallel.rules[0].tensor = "heads";
  EXPECT_ERROR(compile_submodel({.job = job}), Code::kBadLayout, "job:7", "names no tensor");
  job.parallel.rules[0] = {.tensor = "layers.*.ffn.up", .dims = {{"experts", {"dp"}}}, .origin = "job:8"};
  EXPECT_ERROR(compile_submodel({.job = job}), Code::kBadLayout, "job:8", "no dimension");
}

TEST(SubmodelPlan, RefusesWhatHasNoParts) {
  SubmodelSpec spec = parts_of(text_job("dp:1", 1), {1}, 1)[0];
  const auto with = [&](auto change) {
    SubmodelSpec other = spec;
    change(other);
    return other;
  };
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job.model.tied_head = true; })), Code::kBadValue,
               "model.tied_head", "one matrix");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job.model.mtp.layers = 1; })), Code::kBadValue,
               "model.mtp", "one token");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.end_layer = 0; })), Code::kBadValue, "first_layer",
               "no layers");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job = text_job("pp:2", 1); })), Code::kBadValue,
               "parallel.pipeline", "stages");
  EXPECT_ERROR(compile_submodel(with([](auto& s) { s.job = text_job("ring:2", 1); })), Code::kBadLayout,
               "parallel.presets", "another order");
  EXPECT_ERROR(compile_submodel(with([](auto& s) {
                 s.job.supernode.hbm = Bytes(100'000);
                 check_fits(compile_submodel(s).plan, s.job.supernode);
               })),
               Code::kDoesNotFit, "supernode.hbm", "");
}

}  // namespace
}  // namespace hyperrun::testing
