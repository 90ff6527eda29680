#include "runtime/model/graph/experts.h"

#include <algorithm>
#include <cmath>

namespace hyperrun {

ExpertsBlock::ExpertsBlock(Builder& builder) : b_(builder), spec_(builder.model.experts) {
  if (spec_.count == 0) return;
  experts_ = b_.graph.add_dim("experts", spec_.count);
  choices_ = b_.graph.add_dim("choices", spec_.choices);
  width_ = b_.graph.add_dim("expert_ffn", spec_.ffn);
  shared_width_ = b_.graph.add_dim("shared_ffn", std::int64_t{spec_.ffn} * spec_.shared);
  if (spec_.capacity.factor == 0) return;
  group_ = spec_.capacity.group > 0 ? spec_.capacity.group : b_.model.sequence;
  const double even = static_cast<double>(group_) * spec_.choices / spec_.count;
  capacity_ = static_cast<std::int32_t>(std::min<double>(group_, std::ceil(spec_.capacity.factor * even)));
}

TensorId ExpertsBlock::operator()(const std::string& at, const std::string& hf, TensorId x) const {
  const auto [gates, ids] = route(at, hf, x);
  const std::vector<TensorId> sent =
      b_.nodes(at + "dispatch", op::Dispatch{}, {x, ids},
               {Tensor{at + "rows", DType::kF32, {experts_, b_.batch, b_.seq, b_.hidden}},
                Tensor{at + "counts", DType::kI32, {experts_, b_.batch, b_.seq}}});
  const TensorId rows = about(sent[0], sent[1]), counts = sent[1];
  b_.graph[counts].vectors = 1;
  b_.graph[counts].choices = spec_.choices;
  const ExpertNames& names = b_.family.expert_names;
  const auto saved = [&](std::string_view matrix) {
    return hf + "experts.*." + std::string(matrix) + ".weight";
  };
  const TensorId gate =
      each(at + "gate", rows, counts, {experts_, width_, b_.hidden}, width_, saved(names.gate));
  const TensorId up = each(at + "up", rows, counts, {experts_, width_, b_.hidden}, width_, saved(names.up));
  const TensorId h = about(b_.node(at + "swiglu", op::SwiGlu{}, {gate, up, counts},
                                   {experts_, b_.batch, b_.seq, width_}, at + "h"),
                           counts);
  const TensorId down =
      each(at + "down", h, counts, {experts_, b_.hidden, width_}, b_.hidden, saved(names.down));
  const TensorId y = b_.node(at + "combine", op::Combine{}, {down, ids, gates}, b_.stream(), at + "out");
  if (spec_.shared == 0) return y;
  const TensorId shared = b_.ffn(at + "shared.", hf + "shared_experts.", x, shared_width_);
  return b_.node(at + "shared.add", op::Add{}, {y, shared}, b_.stream(), at + "all");
}

std::pair<TensorId, TensorId> ExpertsBlock::route(const std::string& at, const std::string& hf,
                                                  TensorId x) const {
  std::vector<TensorId> inputs{
      b_.linear(at + "router", x, {experts_, b_.hidden}, {b_.batch, b_.seq, experts_}, {hf + "gate.weight"})};
  if (spec_.bias_rate > 0) inputs.push_back(bias(at, hf));
  // The load-balancing loss (Fedus et al. 2022): aux_loss x experts x sum over experts of (share of the
  // choices) x (mean probability), over the tokens of a micro-batch, which has its share of the step's loss.
  const double tokens = static_cast<double>(b_.use.batch) * b_.model.sequence;
  const double aux = spec_.aux_loss * spec_.count / (spec_.choices * tokens) * b_.use.loss_scale;
  const std::int32_t admitted = spec_.capacity.drop ? capacity_ : 0;
  const op::Route how{
      spec_.choices, spec_.scoring == "sigmoid", spec_.normalize, spec_.scale, aux,
      spec_.groups,  spec_.group_choices,        admitted,        group_,      spec_.group_best};
  const auto routed = b_.nodes(at + "route", how, inputs,
                               {Tensor{at + "gates", DType::kF32, {b_.batch, b_.seq, choices_}},
                                Tensor{at + "ids", DType::kI32, {b_.batch, b_.seq, choices_}},
                                Tensor{at + "load", DType::kF32, {experts_}}});
  if (inputs.size() > 1 && b_.use.trains()) {
    const TensorId load =
        b_.nodes(at + "load.sum", op::Accumulate{}, {routed[2]},
                 {Tensor{at + "load.step", DType::kF32, {experts_}, TensorClass::kAccumulator}})[0];
    b_.graph.add_node(
        {at + "balance", op::Balance{spec_.bias_rate}, {inputs[1], load}, {}, {}, Phase::kUpdate},
        {Tensor{at + "bias.next", DType::kF32, {experts_}, TensorClass::kWeight, inputs[1]}});
  }
  return {routed[0], routed[1]};
}

TensorId ExpertsBlock::bias(const std::string& at, const std::string& hf) const {
  return b_.weight(at + "bias", {experts_}, {hf + "gate.e_score_correction_bias"}, op::InitFill{0});
}

TensorId ExpertsBlock::each(const std::string& name, TensorId rows, TensorId counts, Dims weight_dims,
                            DimId out, const std::string& saved_as) const {
  const TensorId w = b_.matrix(name, std::move(weight_dims), {saved_as}, 2);
  return about(b_.node(name + ".product", op::Matmul{}, {rows, w, counts}, {experts_, b_.batch, b_.seq, out},
                       name + ".out"),
               counts);
}

TensorId ExpertsBlock::about(TensorId rows, TensorId counts) const {
  Tensor& tensor = b_.graph[rows];
  tensor.counts = counts;
  tensor.choices = spec_.choices;
  tensor.capacity = capacity_;
  tensor.group = group_;
  return rows;
}

}  // namespace hyperrun
