// Training of parts of models, with the test copying between their ports: whole text models in parts, and one
// that reads an encoder's features.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "runtime/compose/submodel.h"
#include "tests/support/in_process_run.h"
#include "tests/support/submodel_devices.h"

namespace hyperrun::testing {

inline constexpr int kSteps = 3;
inline constexpr std::int64_t kItems = 4, kTokens = 6, kWidth = 10;  // of the encoder's inputs

// A job of three layers, without clipping. `layout` is as in small_job().
Job text_job(const std::string& layout, int micro_batches);

// A text whose positions all have the same weight, so that its loss is the mean; and its micro-batches.
Samples plain_text(const Job& job, std::int64_t step);
std::vector<Samples> micro_batches_of(const Job& job, const Samples& all);

// Runs "norm" of all parts if gradients are clipped, and "update" with the squares of the others. Returns the
// norms that parts report.
std::vector<double> update_together(const std::vector<SubmodelDevices*>& parts, const TrainingSpec& training,
                                    std::int64_t step);

// Parts of a text model in a row; the tensors between their ports are copied here.
class Text {
 public:
  explicit Text(const std::vector<SubmodelSpec>& parts) {
    for (const SubmodelSpec& spec : parts) parts_.emplace_back(spec);
    slots_ = parts.front().slots;
  }

  SubmodelDevices& part(std::size_t i) { return parts_[i]; }

  // Runs as many micro-batches at once as ports have slots. Returns the sum of their losses.
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

// Cuts the model behind these layers.
std::vector<SubmodelSpec> parts_of(const Job& job, const std::vector<int>& cuts, std::int64_t slots);

struct Trained {
  std::vector<double> losses, grad_norms;  // of each step, and of each part in it
  std::map<std::string, std::vector<float>> weights;
};

// The results of the whole model on the same texts, and of its parts.
RunResult trained_whole(const Job& job);
Trained trained_in_parts(const Job& job, const std::vector<SubmodelSpec>& parts);

// Gradients are clipped to half the norm of the first step without clipping.
Job clipped(Job job);

// `losses` and `weights` are relative tolerances. Losses are sums of the same terms, rounded once a
// micro-batch, and of the weights of texts.
void expect_alike(const RunResult& whole, const Trained& parts, double losses, double weights,
                  const std::string& what);
void expect_alike(const Trained& expected, const Trained& actual, double losses, double weights,
                  const std::string& what);

// A job of two layers, without clipping.
SubmodelSpec encoder_spec(const std::string& layout, std::int64_t slots = 1);
InputVectors made_up_vectors(std::int64_t seed, std::int64_t items = kItems);

// A text model that reads these items, and texts with them. Each item is in one of the sequences, token
// behind token; the last token of the last item is in none.
SubmodelSpec reader_spec(const std::string& layout, std::int64_t slots = 1);
Samples with_features(Samples s);

// An encoder and its text model, both as one part.
class Omni {
 public:
  Omni(const SubmodelSpec& encoder, const SubmodelSpec& text)
      : encoder_(encoder), text_(text), job_(text.job) {}

  SubmodelDevices& encoder() { return encoder_; }
  SubmodelDevices& text() { return text_; }

  // `slices` are of the encoder's devices, each of which reads its items alone; empty: all read at once.
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

  Trained train(const std::vector<std::vector<int>>& slices = {{}});

 private:
  SubmodelDevices encoder_, text_;
  Job job_;
};

}  // namespace hyperrun::testing
