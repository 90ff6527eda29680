// Megatron-LM's flags of a model.
#include <fmt/core.h>

#include "runtime/frameworks/models.h"
#include "runtime/ir/families.h"

namespace hyperrun::frameworks {
namespace {

template <class T, class U>
void put(std::optional<T>& slot, const U& value, const U& usual) {
  if (value != usual) slot = value;
}

// "([0]*3+[1]*58)": runs of layers that do not have and that have something.
template <class Has>
std::string pattern_of(const ModelSpec& m, Has has_it) {
  std::string text;
  for (std::int32_t first = 0; first < m.layers;) {
    const bool has = has_it(first);
    std::int32_t end = first;
    while (end < m.layers && has_it(end) == has) ++end;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", has ? 1 : 0, end - first);
    first = end;
  }
  return "(" + text + ")";
}

void put_experts(const ModelSpec& m, Launch& l, std::vector<std::string>& cannot) {
  const ExpertsSpec& e = m.experts;
  if (e.count == 0) return;
  l.experts = e.count, l.choices = e.choices, l.expert_ffn = e.ffn;
  if (e.shared > 0) l.shared_ffn = e.shared * e.ffn;
  if (e.dense_layers > 0 || !e.dense.empty())
    l.expert_pattern = pattern_of(m, [&](std::int32_t i) { return e.in_layer(i); });
  put(l.scoring, e.scoring, std::string("softmax"));
  if (e.scoring == "softmax" && !e.normalize) l.scores_before_choice = true;
  if (e.scoring == "sigmoid" && !e.normalize)
    cannot.emplace_back("model.experts.normalize: scores of a sigmoid that are not divided by their sum");
  put(l.scale, e.scale, 1.0);
  put(l.groups, e.groups, 1);
  put(l.group_choices, e.group_choices, 1);
  l.balancing = e.aux_loss > 0 ? "aux_loss" : "none";
  put(l.aux_loss, e.aux_loss, 0.0);
  if (e.bias_rate > 0) l.expert_bias = true, l.bias_rate = e.bias_rate;
  if (e.capacity.factor > 0 && e.capacity.drop) l.capacity = e.capacity.factor;
  if (e.capacity.group > 0 && e.capacity.drop) cannot.emplace_back("model.experts.capacity.group");
}

void put_rope(const ModelSpec& m, Launch& l, std::vector<std::string>& cannot) {
  l.position_kind = "rope";
  l.rope_theta = m.rope_theta;
  const RopeScaling& s = m.rope_scaling;
  if (s == RopeScaling{}) return;
  if (s.type != kLlama3Rope) {
    cannot.push_back(fmt::format("model.rope_scaling of type {}", s.type));
    return;
  }
  if (s.low_freq_factor != 1 || s.high_freq_factor != 4 || s.original_sequence != 8192)
    cannot.emplace_back("model.rope_scaling with other factors than those of Llama 3.1");
  l.llama_rope = true, l.rope_factor = s.factor;
}

void put_window(const ModelSpec& m, Launch& l) {
  if (m.window == 0) return;
  l.window_pair = fmt::format("{},0", m.window - 1);
  if (!m.window_layers.empty())
    l.window_pattern = pattern_of(m, [&](std::int32_t i) { return m.window_of(i) > 0; });
}

}  // namespace

void flags_of_model(const ModelSpec& m, Launch& l, std::vector<std::string>& cannot) {
  l.layers = m.layers, l.hidden = m.hidden, l.heads = m.heads, l.ffn = m.ffn, l.sequence = m.sequence;
  l.positions = std::max(m.positions, m.sequence);
  l.padded_vocab = m.vocab;
  l.norm_eps = m.norm_eps;
  if (!m.tied_head) l.untied = true;
  put_experts(m, l, cannot);
  if (m.mtp.layers > 0) l.mtp_layers = m.mtp.layers, l.mtp_factor = m.mtp.loss_factor;
  if (m.name == "gpt2") {
    l.norm = "LayerNorm", l.position_kind = "learned";
    return;
  }
  l.norm = "RMSNorm", l.swiglu = true, l.no_bias = true;
  put_rope(m, l, cannot);
  const ModelFamily& family = family_of(m);
  if (family.qk_norm) l.qk_norm = true;
  if (family.qkv_bias) l.qkv_bias = true;
  if (m.attention_bias) cannot.emplace_back("model.attention_bias");
  if (m.mlp_bias) cannot.emplace_back("model.mlp_bias");
  put_window(m, l);
  if (m.rotary_dim > 0) cannot.emplace_back("model.rotary_dim");
  if (family.latent) {
    l.latent = true;
    if (m.latent.q_rank > 0) l.q_rank = m.latent.q_rank;
    l.kv_rank = m.latent.kv_rank, l.nope_dim = m.latent.nope_dim, l.rope_dim = m.latent.rope_dim;
    l.value_dim = m.latent.value_dim;
    return;
  }
  if (m.kv_heads != m.heads) l.grouped_queries = true, l.kv_heads = m.kv_heads;
  if (m.head_dim != m.hidden / m.heads) l.head_dim = m.head_dim;
}

}  // namespace hyperrun::frameworks
