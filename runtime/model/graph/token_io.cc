#include "runtime/model/graph/token_io.h"

#include <fmt/core.h>

#include "runtime/base/error.h"

namespace hyperrun {

TokenIo::TokenIo(Builder& builder, const std::string& saved_as) : b_(builder) {
  if (!b_.begins() && !b_.ends()) return;
  const Tensor ids{"ids", DType::kI32, {b_.batch, b_.seq}, TensorClass::kData};
  switch (b_.use.purpose) {
    case Purpose::kTrain: load_batch(ids); break;
    case Purpose::kGenerate: load_requests(ids); break;
    case Purpose::kScore:
    case Purpose::kTexts:
    case Purpose::kPolicy: load_samples(ids); break;
  }
  if (b_.begins()) embed_ = b_.matrix("embed", {b_.vocab, b_.hidden}, {saved_as});
  if (!b_.ends()) return;
  head_ = b_.model.tied_head ? embed_ : b_.matrix("head", {b_.vocab, b_.hidden}, {"lm_head.weight"});
}

TensorId TokenIo::embedded(const std::string& out) const {
  const auto& of = b_.use.features;
  TensorId x = b_.node("embed.lookup", op::Embedding{}, {ids_, embed_}, b_.stream(),
                       of.empty() ? out : "embed.tokens");
  for (std::size_t i = 0; i < of.size(); ++i) {
    const std::string& name = of[i].name;
    const DimId items = b_.graph.add_dim(name + ".items", of[i].items),
                tokens = b_.graph.add_dim(name + ".tokens", of[i].tokens);
    const TensorId table = b_.load_port(name, {items, tokens, b_.hidden}, name + ".features");
    const TensorId rows =
        b_.node(name + ".lookup", op::Embedding{}, {features_[i], table}, b_.stream(), name + ".residual");
    x = b_.node(name + ".add", op::Add{}, {x, rows}, b_.stream(), i + 1 == of.size() ? out : name + ".sum");
  }
  return x;
}

void TokenIo::load_requests(const Tensor& ids) {
  const auto loaded =
      b_.nodes("batch", op::LoadRequests{}, {},
               {ids, Tensor{"requests", DType::kI32, {b_.batch, b_.request}, TensorClass::kData}});
  ids_ = loaded[0];
  b_.requests = loaded[1];
}

void TokenIo::load_samples(const Tensor& ids) {
  std::vector<Tensor> loaded{ids, ids};
  loaded[1].name = "targets";
  const auto add_number = [&](const std::string& name) {
    loaded.push_back({name, DType::kF32, ids.dims, TensorClass::kData});
  };
  if (b_.use.purpose == Purpose::kPolicy)
    for (const char* name : {"weight", "advantage", "behaviour", "reference"})
      add_number("policy." + std::string(name));
  if (b_.use.purpose == Purpose::kTexts && b_.ends()) add_number("weight");
  const auto numbers = static_cast<std::ptrdiff_t>(loaded.size());
  for (const auto& of : b_.use.features) {
    loaded.push_back(ids);
    loaded.back().name = of.name + ".rows";
  }
  const op::LoadSamples load{static_cast<std::int32_t>(b_.use.features.size())};
  const std::vector<TensorId> all = b_.nodes("batch", load, {}, std::move(loaded));
  ids_ = all[0];
  targets_ = {all[1]};
  trained_by_.assign(all.begin() + 2, all.begin() + numbers);
  features_.assign(all.begin() + numbers, all.end());
}

void TokenIo::load_batch(const Tensor& ids) {
  std::vector<Tensor> loaded{ids};
  for (int further = 0; further <= b_.model.mtp.layers; ++further) {
    loaded.push_back(ids);
    loaded.back().name = further == 0 ? "targets" : fmt::format("targets.{}", further);
  }
  targets_ = b_.nodes("batch", op::LoadBatch{}, {}, std::move(loaded));
  ids_ = targets_.front();
  targets_.erase(targets_.begin());
}

TensorId TokenIo::positions() const {
  std::vector<TensorId> of{ids_};
  if (b_.use.generates()) of.push_back(b_.requests);
  return b_.nodes("positions.of_tokens", op::Positions{}, std::move(of),
                  {Tensor{"positions.ids", DType::kI32, {b_.batch, b_.seq}}})[0];
}

TensorId TokenIo::last(TensorId x) const {
  if (!b_.use.generates()) return x;
  return b_.node("last", op::SelectRow{}, {x, b_.requests}, {b_.batch, b_.hidden}, "last");
}

void TokenIo::end(TensorId x) const {
  switch (b_.use.purpose) {
    case Purpose::kTrain: b_.graph.outputs.emplace_back("loss", loss("", x, targets_[0], 1)); break;
    case Purpose::kGenerate: sample(x); break;
    case Purpose::kScore: b_.graph.outputs.emplace_back("logp", log_probs(x)); break;
    case Purpose::kTexts: texts_loss(x); break;
    case Purpose::kPolicy: policy_loss(log_probs(x)); break;
  }
}

TokenIo::Softmax TokenIo::softmax(const std::string& at, TensorId x, TensorId targets, double scale) const {
  const Dims rows{b_.batch, b_.seq}, wide{b_.batch, b_.seq, b_.vocab};
  const TensorId logits = b_.node(at + "head.product", op::Matmul{}, {x, head_}, wide, at + "logits");
  const auto stats = b_.nodes(
      at + "loss.stats", op::SoftmaxStats{scale}, {logits, targets},
      {Tensor{at + "loss.e", DType::kF32, wide}, Tensor{at + "loss.max", DType::kF32, rows},
       Tensor{at + "loss.local_sum", DType::kF32, rows}, Tensor{at + "loss.target", DType::kF32, rows}});
  const TensorId sum =
      b_.node(at + "loss.rescale", op::RescaleSums{}, {stats[2], stats[1], stats[1]}, rows, at + "loss.sum");
  return {sum, stats[1], stats[3]};
}

TensorId TokenIo::loss(const std::string& at, TensorId x, TensorId targets, double factor) const {
  const Softmax of = softmax(at, x, targets, 1);
  return b_.nodes(at + "loss.total", op::TokenLoss{b_.use.loss_scale * factor},
                  {of.sum, of.max, of.target, targets},
                  {Tensor{at + "loss", DType::kF32, {}, TensorClass::kAccumulator}})[0];
}

// The loss of given texts; each micro-batch has its own.
void TokenIo::texts_loss(TensorId x) const {
  const Softmax of = softmax("", x, targets_[0], 1);
  b_.graph.outputs.emplace_back(
      "loss", b_.node("loss.total", op::TokenLoss{}, {of.sum, of.max, of.target, targets_[0], trained_by_[0]},
                      {}, "loss"));
  b_.graph.outputs.emplace_back("logp", log_probs(of));
}

TensorId TokenIo::log_probs(TensorId x) const {
  HR_CHECK(b_.use.temperature > 0, "the likeliest token alone has no log probability");
  return log_probs(softmax("", x, targets_[0], 1 / b_.use.temperature));
}

TensorId TokenIo::log_probs(const Softmax& of) const {
  return b_.node("loss.log_probs", op::TokenLogProbs{}, {of.sum, of.max, of.target, targets_[0]},
                 {b_.batch, b_.seq}, "logp");
}

// The loss of a policy. Its four sums are reduced together, and reported one by one.
void TokenIo::policy_loss(TensorId logp) const {
  const std::vector<std::string> reported{"loss", "kl", "clipped", "ratio"};
  const DimId of_sums = b_.graph.add_dim("policy_sums", std::ssize(reported));
  std::vector<TensorId> inputs{logp, targets_[0]};
  inputs.insert(inputs.end(), trained_by_.begin(), trained_by_.end());
  const TensorId sums =
      b_.nodes("loss.policy", op::PolicyLoss{b_.use.clip, b_.use.kl}, std::move(inputs),
               {Tensor{"policy.sums", DType::kF32, {of_sums}, TensorClass::kAccumulator}})[0];
  std::vector<Tensor> scalars;
  for (const std::string& name : reported) scalars.push_back({name, DType::kF32, {}});
  const auto found = b_.graph.add_node(
      {"loss.reported", op::Elements{}, {sums}, {}, {}, Phase::kUpdate, b_.layer}, std::move(scalars));
  for (std::size_t i = 0; i < reported.size(); ++i) b_.graph.outputs.emplace_back(reported[i], found[i]);
}

void TokenIo::sample(TensorId x) const {
  const TensorId logits = b_.node("head.product", op::Matmul{}, {x, head_}, {b_.batch, b_.vocab}, "logits");
  const auto drawn =
      b_.nodes("sample", op::Sample{b_.use.temperature, b_.use.top_k, b_.use.top_p}, {logits, b_.requests},
               {Tensor{"token", DType::kI32, {b_.batch}}, Tensor{"logp", DType::kF32, {b_.batch}}});
  b_.graph.outputs.emplace_back("token", drawn[0]);
  b_.graph.outputs.emplace_back("logp", drawn[1]);
}

}  // namespace hyperrun
