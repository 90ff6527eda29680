#include "runtime/model/graph/token_io.h"

#include "runtime/base/error.h"

namespace hyperrun {

TokenIo::TokenIo(Builder& builder, const std::string& saved_as) : b_(builder) {
  const Tensor ids{"ids", DType::kI32, {b_.batch, b_.seq}, TensorClass::kData};
  switch (b_.use.purpose) {
    case Purpose::kTrain: load_batch(ids); break;
    case Purpose::kGenerate: load_requests(ids); break;
    case Purpose::kScore:
    case Purpose::kPolicy: load_samples(ids); break;
  }
  embed_ = b_.matrix("embed", {b_.vocab, b_.hidden}, {saved_as});
  head_ = b_.model.tied_head ? embed_ : b_.matrix("head", {b_.vocab, b_.hidden}, {"lm_head.weight"});
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
  if (b_.use.purpose == Purpose::kPolicy)
    for (const char* name : {"weight", "advantage", "behaviour", "reference"})
      loaded.push_back({"policy." + std::string(name), DType::kF32, ids.dims, TensorClass::kData});
  trained_by_ = b_.nodes("batch", op::LoadSamples{}, {}, std::move(loaded));
  ids_ = trained_by_[0];
  targets_ = {trained_by_[1]};
  trained_by_.erase(trained_by_.begin(), trained_by_.begin() + 2);
}

void TokenIo::load_batch(const Tensor& ids) {
  std::vector<Tensor> loaded{ids};
  for (int further = 0; further <= b_.model.mtp.layers; ++further) {
    loaded.push_back(ids);
    loaded.back().name = further == 0 ? "targets" : "targets." + std::to_string(further);
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

TensorId TokenIo::log_probs(TensorId x) const {
  HR_CHECK(b_.use.temperature > 0, "the likeliest token alone has no log probability");
  const Softmax of = softmax("", x, targets_[0], 1 / b_.use.temperature);
  return b_.node("loss.log_probs", op::TokenLogProbs{}, {of.sum, of.max, of.target, targets_[0]},
                 {b_.batch, b_.seq}, "logp");
}

// Their sums are reduced together, and reported one by one.
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
