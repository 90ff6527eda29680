#include "runtime/model/graph/attention.h"

#include <cmath>

namespace hyperrun {

namespace {

std::int64_t window_of(const Builder& b) { return b.causal ? b.model.window_of(b.layer) : 0; }

// The factor of the scores; 0: the usual one.
double scale_of(const Builder& b) {
  const double factor = b.model.latent.kv_rank > 0 ? rope_score_factor(b.model.rope_scaling) : 1;
  return factor == 1 ? 0 : factor / std::sqrt(static_cast<double>(b.model.head_dim));
}

TensorId attend_to_cache(Builder& b, const std::string& at, TensorId q, TensorId k, TensorId v) {
  const DimId value_dim = b.graph[v].dims.back();
  const bool parts = b.part.valid();
  const auto cache = [&](const char* of, DimId width) {
    Dims dims{b.batch, b.pages, b.page, b.kv_heads, width};
    if (parts) dims.insert(dims.begin() + 2, b.part);
    return b.graph.add_tensor({at + "cache." + of, DType::kF32, std::move(dims), TensorClass::kCache});
  };
  const TensorId keys = cache("keys", b.head_dim), values = cache("values", value_dim);
  const auto grown = [&](TensorId of, const char* name) {
    Tensor t = b.graph[of];
    t.name = at + name;
    t.updates = of;
    return t;
  };
  Tensor o{at + "o", DType::kF32, {b.batch, b.seq, b.kv_heads, b.group, value_dim}};
  std::vector<Tensor> outs{o, grown(keys, "grown.keys"), grown(values, "grown.values")};
  if (parts) {
    outs[0].name = at + "found";
    outs[0].dims.insert(outs[0].dims.begin(), b.part);
    outs.push_back({at + "found.lse", DType::kF32, {b.part, b.batch, b.kv_heads, b.group, b.seq}});
  }
  const auto found = b.nodes(at + "core", op::CachedAttention{b.use.context, window_of(b), scale_of(b)},
                             {q, k, v, b.requests, keys, values}, std::move(outs));
  return parts ? b.nodes(at + "merge", op::MergeParts{}, {found[0], found[3]}, {std::move(o)})[0] : found[0];
}

}  // namespace

TensorId attend(Builder& b, const std::string& at, TensorId q, TensorId k, TensorId v) {
  const DimId value_dim = b.graph[v].dims.back();
  if (b.use.generates()) return attend_to_cache(b, at, q, k, v);
  return b.nodes(at + "core", op::Attention{b.causal, window_of(b), scale_of(b)}, {q, k, v},
                 {Tensor{at + "o", DType::kF32, {b.batch, b.seq, b.kv_heads, b.group, value_dim}},
                  Tensor{at + "lse", DType::kF32, {b.batch, b.kv_heads, b.group, b.seq}}})[0];
}

AttentionBlock::AttentionBlock(Builder& builder)
    : b_(builder), value_dim_(builder.head_dim), turned_dim_(builder.head_dim) {
  const LatentSpec& latent = b_.model.latent;
  if (latent.kv_rank > 0) {
    if (latent.q_rank > 0) q_rank_ = b_.graph.add_dim("q_rank", latent.q_rank);
    kv_rank_ = b_.graph.add_dim("kv_rank", latent.kv_rank);
    nope_dim_ = b_.graph.add_dim("nope_dim", latent.nope_dim);
    turned_dim_ = b_.graph.add_dim("rope_dim", latent.rope_dim);
    value_dim_ = b_.graph.add_dim("value_dim", latent.value_dim);
  } else if (b_.model.rotary_dim > 0 && b_.model.rotary_dim < b_.model.head_dim) {
    turned_dim_ = b_.graph.add_dim("rotary_dim", b_.model.rotary_dim);
  }
  if (b_.use.generates()) return;
  // A training makes the table once as state; other programs, whose only state is weights, make it in each
  // pass.
  const bool lasts = b_.use.trains();
  table_ = b_.graph.add_node({lasts ? "rope.init" : "rope.turns",
                              op::RopeTable{b_.model.rope_theta, b_.model.rope_scaling, b_.model.sequence},
                              {},
                              {},
                              {},
                              lasts ? Phase::kInit : Phase::kForward},
                             {Tensor{"rope",
                                     DType::kF32,
                                     {b_.seq, turned_dim_},
                                     lasts ? TensorClass::kConstant : TensorClass::kActivation}})[0];
}

void AttentionBlock::set_positions(TensorId positions) {
  table_ = b_.node("rope.turns", op::RopeTable{b_.model.rope_theta, b_.model.rope_scaling, b_.use.context},
                   {positions}, {b_.batch, b_.seq, turned_dim_}, "rope");
}

TensorId AttentionBlock::operator()(const std::string& at, const std::string& hf, TensorId x,
                                    TensorId stream) const {
  const auto [q, k, v] = b_.model.latent.kv_rank > 0 ? latent(at, hf, x) : grouped(at, hf, x);
  const TensorId out =
      b_.linear(at + "wo", attend(b_, at, q, k, v), {b_.hidden, b_.kv_heads, b_.group, value_dim_},
                b_.stream(), {hf + "o_proj.weight"});
  Builder::Bias bias;
  if (b_.model.attention_bias) bias = {at + "wo", {hf + "o_proj.bias", {b_.model.hidden}}};
  return b_.onto(stream, at, out, bias);
}

AttentionBlock::Heads AttentionBlock::grouped(const std::string& at, const std::string& hf,
                                              TensorId x) const {
  const DimId kv_heads = b_.kv_heads, group = b_.group, head_dim = b_.head_dim, hidden = b_.hidden;
  const Dims q_dims{b_.batch, b_.seq, kv_heads, group, head_dim},
      kv_dims{b_.batch, b_.seq, kv_heads, head_dim};
  const ModelSpec& m = b_.model;
  const std::int64_t of_q = std::int64_t{m.heads} * m.head_dim, of_k = std::int64_t{m.kv_heads} * m.head_dim;
  // Rows [first, first + rows) of the matrix that joins q, k and v, or a matrix of its own.
  const auto saved = [&](const char* matrix, std::int64_t first) {
    if (!b_.family.fused) return SavedAs{hf + matrix + ".weight"};
    const std::int64_t all = of_q + 2 * of_k;
    return SavedAs{hf + "qkv_proj.weight", {all, m.hidden}, 1, first * m.hidden, all * m.hidden};
  };
  TensorId q = b_.linear(at + "wq", x, {kv_heads, group, head_dim, hidden}, q_dims, saved("q_proj", 0));
  TensorId k = b_.linear(at + "wk", x, {kv_heads, head_dim, hidden}, kv_dims, saved("k_proj", of_q));
  TensorId v = b_.linear(at + "wv", x, {kv_heads, head_dim, hidden}, kv_dims, saved("v_proj", of_q + of_k));
  if (has_qkv_bias(m)) {
    q = b_.biased(q, {kv_heads, group, head_dim}, {at + "wq", {hf + "q_proj.bias", {of_q}}}, at + "q_biased");
    k = b_.biased(k, {kv_heads, head_dim}, {at + "wk", {hf + "k_proj.bias", {of_k}}}, at + "k_biased");
    v = b_.biased(v, {kv_heads, head_dim}, {at + "wv", {hf + "v_proj.bias", {of_k}}}, at + "v");
  }
  if (b_.family.qk_norm) {
    q = b_.norm(at + "q_norm", q, hf + "q_norm.weight");
    k = b_.norm(at + "k_norm", k, hf + "k_norm.weight");
  }
  return {turned(at + "rope_q", q, at + "q"), turned(at + "rope_k", k, at + "k"), v};
}

// Latent attention (DeepSeek-AI 2024, DeepSeek-V2, 2.1). One part of a head's keys comes from the compressed
// state; the other part, with rotary positions, is the same for all heads. Checkpoints join products of one
// input into one matrix: those of x, and for each head those of keys and values.
AttentionBlock::Heads AttentionBlock::latent(const std::string& at, const std::string& hf, TensorId x) const {
  const DimId batch = b_.batch, seq = b_.seq, kv_heads = b_.kv_heads, hidden = b_.hidden;
  const LatentSpec& spec = b_.model.latent;
  const std::int64_t width = b_.model.hidden, rank = spec.kv_rank;
  const auto of_x = [&](std::int64_t first) {
    return SavedAs{hf + "kv_a_proj_with_mqa.weight",
                   {rank + spec.rope_dim, width},
                   1,
                   first * width,
                   (rank + spec.rope_dim) * width};
  };
  const auto of_state = [&](std::int64_t first) {
    const std::int64_t rows = spec.nope_dim + spec.value_dim;
    return SavedAs{hf + "kv_b_proj.weight", {b_.model.kv_heads * rows, rank}, 1, first * rank, rows * rank};
  };

  TensorId q_input = x;
  if (q_rank_.valid()) {
    const TensorId down =
        b_.linear(at + "q_down", x, {q_rank_, hidden}, {batch, seq, q_rank_}, {hf + "q_a_proj.weight"});
    q_input = b_.norm(at + "q_norm", down, hf + "q_a_layernorm.weight");
  }
  const TensorId q =
      b_.linear(at + "wq", q_input, {kv_heads, b_.group, b_.head_dim, q_rank_.valid() ? q_rank_ : hidden},
                {batch, seq, kv_heads, b_.group, b_.head_dim},
                {hf + (q_rank_.valid() ? "q_b_proj.weight" : "q_proj.weight")});
  const TensorId down = b_.linear(at + "kv_down", x, {kv_rank_, hidden}, {batch, seq, kv_rank_}, of_x(0));
  const TensorId shared =
      b_.linear(at + "k_shared", x, {turned_dim_, hidden}, {batch, seq, turned_dim_}, of_x(rank));
  const TensorId state = b_.norm(at + "kv_norm", down, hf + "kv_a_layernorm.weight");
  const TensorId own = b_.linear(at + "wk", state, {kv_heads, nope_dim_, kv_rank_},
                                 {batch, seq, kv_heads, nope_dim_}, of_state(0));
  const TensorId v = b_.linear(at + "wv", state, {kv_heads, value_dim_, kv_rank_},
                               {batch, seq, kv_heads, value_dim_}, of_state(spec.nope_dim));
  const TensorId k = b_.node(at + "join_k", op::Join{}, {own, turned(at + "rope_k", shared, at + "k_turned")},
                             {batch, seq, kv_heads, b_.head_dim}, at + "k");
  return {turned(at + "rope_q", q, at + "q"), k, v};
}

TensorId AttentionBlock::turned(const std::string& name, TensorId x, const std::string& out) const {
  const Dims dims = b_.graph[x].dims;
  const bool first = turned_dim_ != b_.head_dim && b_.model.latent.kv_rank == 0;
  return b_.node(name, op::Rope{false, b_.family.turns_neighbours, first}, {x, table_}, dims, out);
}

}  // namespace hyperrun
