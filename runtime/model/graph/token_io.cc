#include "runtime/model/graph/token_io.h"

namespace hyperrun {

TokenIo::TokenIo(Builder& builder, const std::string& saved_as) : b_(builder) {
  const Tensor ids{"ids", DType::kI32, {b_.batch, b_.seq}, TensorClass::kData};
  if (b_.use.generate) {
    const auto loaded =
        b_.nodes("batch", op::LoadRequests{}, {},
                 {ids, Tensor{"requests", DType::kI32, {b_.batch, b_.request}, TensorClass::kData}});
    ids_ = loaded[0];
    b_.requests = loaded[1];
  } else {
    std::vector<Tensor> loaded{ids};
    for (int further = 0; further <= b_.model.mtp.layers; ++further) {
      loaded.push_back(ids);
      loaded.back().name = further == 0 ? "targets" : "targets." + std::to_string(further);
    }
    targets_ = b_.nodes("batch", op::LoadBatch{}, {}, std::move(loaded));
    ids_ = targets_.front();
    targets_.erase(targets_.begin());
  }
  embed_ = b_.matrix("embed", {b_.vocab, b_.hidden}, {saved_as});
  head_ = b_.model.tied_head ? embed_ : b_.matrix("head", {b_.vocab, b_.hidden}, {"lm_head.weight"});
}

TensorId TokenIo::positions() const {
  std::vector<TensorId> of{ids_};
  if (b_.use.generate) of.push_back(b_.requests);
  return b_.nodes("positions.of_tokens", op::Positions{}, std::move(of),
                  {Tensor{"positions.ids", DType::kI32, {b_.batch, b_.seq}}})[0];
}

TensorId TokenIo::last(TensorId x) const {
  if (!b_.use.generate) return x;
  return b_.node("last", op::SelectRow{}, {x, b_.requests}, {b_.batch, b_.hidden}, "last");
}

void TokenIo::end(TensorId x) const {
  if (b_.use.generate)
    sample(x);
  else
    b_.graph.outputs.emplace_back("loss", loss("", x, targets_[0], 1));
}

TensorId TokenIo::loss(const std::string& at, TensorId x, TensorId targets, double factor) const {
  const Dims rows{b_.batch, b_.seq}, wide{b_.batch, b_.seq, b_.vocab};
  const TensorId logits = b_.node(at + "head.product", op::Matmul{}, {x, head_}, wide, at + "logits");
  const auto stats = b_.nodes(
      at + "loss.stats", op::SoftmaxStats{}, {logits, targets},
      {Tensor{at + "loss.e", DType::kF32, wide}, Tensor{at + "loss.max", DType::kF32, rows},
       Tensor{at + "loss.local_sum", DType::kF32, rows}, Tensor{at + "loss.target", DType::kF32, rows}});
  const TensorId sum =
      b_.node(at + "loss.rescale", op::RescaleSums{}, {stats[2], stats[1], stats[1]}, rows, at + "loss.sum");
  return b_.nodes(at + "loss.total", op::TokenLoss{b_.use.loss_scale * factor},
                  {sum, stats[1], stats[3], targets},
                  {Tensor{at + "loss", DType::kF32, {}, TensorClass::kAccumulator}})[0];
}

void TokenIo::sample(TensorId x) const {
  const TensorId logits = b_.node("head.product", op::Matmul{}, {x, head_}, {b_.batch, b_.vocab}, "logits");
  const auto drawn = b_.nodes("sample", op::Sample{b_.use.temperature, b_.use.top_k, b_.use.top_p},
                              {logits, b_.requests}, {Tensor{"token", DType::kI32, {b_.batch}}});
  b_.graph.outputs.emplace_back("token", drawn[0]);
}

}  // namespace hyperrun
