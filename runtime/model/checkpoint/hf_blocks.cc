#include "runtime/model/checkpoint/hf_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/ir/limits.h"

namespace hyperrun {
namespace {

std::int32_t number(const JsonFields& fields, const char* field, std::int64_t value, std::int64_t least,
                    std::int32_t most) {
  if (value < least || value > most)
    throw fields.error(field, fmt::format("is {}", value)).legal(fmt::format("{} to {}", least, most));
  return static_cast<std::int32_t>(value);
}

// Refuses any value of a router's field but the supported one.
void expect(const JsonFields& fields, const char* field, const std::string& supported) {
  const std::string value = fields.string(field, supported.c_str());
  if (value != supported) throw fields.error(field, "\"" + value + "\" is not supported").legal(supported);
}

std::string read_scoring(const JsonFields& fields, const char* field, const char* otherwise) {
  std::string scoring = fields.string(field, otherwise);
  if (scoring != "softmax" && scoring != "sigmoid")
    throw fields.error(field, "\"" + scoring + "\" is not supported").legal("softmax, sigmoid");
  return scoring;
}

// The layers for which `has` is true, as ranges.
template <class Has>
std::vector<LayerRange> layers_that(std::int32_t first, std::int32_t layers, Has has) {
  std::vector<LayerRange> ranges;
  for (std::int32_t l = first; l < layers; ++l) {
    if (!has(l)) continue;
    LayerRange* const last = ranges.empty() ? nullptr : &ranges.back();
    const std::int32_t step = last == nullptr ? 0 : l - last->last_layer;
    // A range of one layer may begin any step; a longer one goes on with its own.
    if (last != nullptr && (last->first_layer == last->last_layer || last->every == step))
      last->every = step, last->last_layer = l;
    else
      ranges.push_back({l, l});
  }
  return ranges;
}

// Sets the layers without experts.
template <class Has>
void set_dense(ExpertsSpec& e, std::int32_t layers, Has has) {
  e.dense_layers = 0;
  while (e.dense_layers < layers && has(e.dense_layers)) ++e.dense_layers;
  e.dense = layers_that(e.dense_layers, layers, has);
}

std::set<std::int32_t> read_layers(const JsonFields& fields, const char* field, std::int32_t layers) {
  std::set<std::int32_t> list;
  const nlohmann::json* const value = fields.find(field);
  if (value == nullptr) return list;
  if (!value->is_array()) throw fields.error(field, "must be a list of layers");
  for (const nlohmann::json& l : *value) {
    if (!l.is_number_unsigned() || l.get<std::uint64_t>() >= static_cast<std::uint64_t>(layers))
      throw fields.error(field, l.dump() + " is no layer").legal(fmt::format("0 to {}", layers - 1));
    list.insert(l.get<std::int32_t>());
  }
  return list;
}

void read_deepseek_groups(const JsonFields& fields, ExpertsSpec& e) {
  e.groups = positive_or(fields, "n_group", 1, limits::kExperts);
  e.group_choices = positive_or(fields, "topk_group", 1, limits::kExperts);
  if (e.count % e.groups != 0) throw fields.error("n_group", "does not divide n_routed_experts");
  if (e.group_choices > e.groups) throw fields.error("topk_group", "is above n_group");
}

}  // namespace

std::int32_t positive(const JsonFields& fields, const char* field, std::int32_t most) {
  return number(fields, field, fields.integer(field), 1, most);
}

std::int32_t positive_or(const JsonFields& fields, const char* field, std::int64_t otherwise,
                         std::int32_t most) {
  return number(fields, field, fields.integer(field, otherwise), 1, most);
}

std::int32_t natural_or(const JsonFields& fields, const char* field, std::int64_t otherwise,
                        std::int32_t most) {
  return number(fields, field, fields.integer(field, otherwise), 0, most);
}

double positive_real(const JsonFields& fields, const char* field, double otherwise) {
  const double value = fields.number(field, otherwise);
  if (!(value > 0)) throw fields.error(field, "must be positive");
  return value;
}

void read_mixtral(const JsonFields& fields, ModelSpec& model) {
  model.experts.count = positive(fields, "num_local_experts", limits::kExperts);
  model.experts.choices = positive(fields, "num_experts_per_tok", limits::kExperts);
  model.experts.ffn = model.ffn;
}

void write_mixtral(const ModelSpec& model, nlohmann::ordered_json& root) {
  root["intermediate_size"] = model.experts.ffn;
  root["num_local_experts"] = model.experts.count;
  root["num_experts_per_tok"] = model.experts.choices;
}

void read_qwen_experts(const JsonFields& fields, ModelSpec& model) {
  ExpertsSpec& e = model.experts;
  e.count = positive(fields, "num_experts", limits::kExperts);
  e.choices = positive(fields, "num_experts_per_tok", limits::kExperts);
  e.ffn = positive(fields, "moe_intermediate_size", limits::kFfn);
  e.normalize = fields.boolean("norm_topk_prob", false);
  const std::int32_t step = positive(fields, "decoder_sparse_step", limits::kLayers);
  const std::set<std::int32_t> without = read_layers(fields, "mlp_only_layers", model.layers);
  set_dense(e, model.layers, [&](std::int32_t l) { return (l + 1) % step != 0 || without.contains(l); });
  if (e.dense_layers == model.layers)
    throw fields.error("mlp_only_layers", "no layer is left for the experts");
}

void write_qwen_experts(const ModelSpec& model, nlohmann::ordered_json& root) {
  const ExpertsSpec& e = model.experts;
  root["num_experts"] = e.count;
  root["num_experts_per_tok"] = e.choices;
  root["moe_intermediate_size"] = e.ffn;
  root["norm_topk_prob"] = e.normalize;
  root["decoder_sparse_step"] = 1;
  root["mlp_only_layers"] = nlohmann::json::array();
  for (std::int32_t l = 0; l < model.layers; ++l)
    if (!e.in_layer(l)) root["mlp_only_layers"].push_back(l);
}

void read_latent(const JsonFields& fields, ModelSpec& model) {
  model.heads = positive(fields, "num_attention_heads", limits::kHeads);
  model.kv_heads = positive_or(fields, "num_key_value_heads", model.heads, limits::kHeads);
  if (model.kv_heads != model.heads)
    throw fields.error("num_key_value_heads", "is not num_attention_heads, as latent attention has it");
  if (!fields.boolean("rope_interleave", true))
    throw fields.error("rope_interleave", "halves that turn are not supported here").legal("true");
  LatentSpec& l = model.latent;
  l.q_rank = natural_or(fields, "q_lora_rank", 0, limits::kRank);
  l.kv_rank = positive(fields, "kv_lora_rank", limits::kRank);
  l.nope_dim = positive(fields, "qk_nope_head_dim", limits::kHeadDim);
  l.rope_dim = positive(fields, "qk_rope_head_dim", limits::kHeadDim);
  l.value_dim = positive(fields, "v_head_dim", limits::kHeadDim);
  if (l.rope_dim % 2 != 0) throw fields.error("qk_rope_head_dim", "must be even for rotary positions");
  model.head_dim = l.nope_dim + l.rope_dim;
}

void write_latent(const ModelSpec& model, nlohmann::ordered_json& root) {
  const LatentSpec& l = model.latent;
  root["head_dim"] = l.rope_dim;  // in this file, the width of rotary positions
  root["q_lora_rank"] = l.q_rank > 0 ? nlohmann::ordered_json(l.q_rank) : nullptr;
  root["kv_lora_rank"] = l.kv_rank;
  root["qk_nope_head_dim"] = l.nope_dim;
  root["qk_rope_head_dim"] = l.rope_dim;
  root["qk_head_dim"] = l.nope_dim + l.rope_dim;
  root["v_head_dim"] = l.value_dim;
  root["rope_interleave"] = true;
  root["num_nextn_predict_layers"] = model.mtp.layers;
}

void read_deepseek_experts(const JsonFields& fields, const ModelFamily& family, ModelSpec& model) {
  model.mtp.layers = natural_or(fields, "num_nextn_predict_layers", 0, limits::kMtpLayers);
  if (fields.find("n_routed_experts") == nullptr) return;
  ExpertsSpec& e = model.experts;
  const std::string method = fields.string("topk_method", "");
  const bool grouped = method == "noaux_tc" || method == "group_limited_greedy";
  const std::string legal = family.normalizes ? "noaux_tc" : "greedy, group_limited_greedy";
  if ((method == "noaux_tc") != family.normalizes || (!grouped && method != "greedy"))
    throw fields.error("topk_method", "\"" + method + "\" is not supported").legal(legal);
  if (fields.integer("moe_layer_freq", 1) != 1)
    throw fields.error("moe_layer_freq", "layers without experts among the others are not supported")
        .legal("1");
  e.count = positive(fields, "n_routed_experts", limits::kExperts);
  e.choices = positive(fields, "num_experts_per_tok", limits::kExperts);
  e.ffn = positive(fields, "moe_intermediate_size", limits::kFfn);
  e.shared = natural_or(fields, "n_shared_experts", 0, limits::kSharedExperts);
  e.dense_layers = natural_or(fields, "first_k_dense_replace", 0, limits::kLayers);
  e.scoring = read_scoring(fields, "scoring_func", "sigmoid");
  e.normalize = fields.boolean("norm_topk_prob", family.normalizes);
  e.scale = positive_real(fields, "routed_scaling_factor", 1);
  e.group_best = family.group_best;
  if (grouped) read_deepseek_groups(fields, e);
  // Version 2's classes do not agree on what a norm of the gates is.
  if (!family.normalizes && e.normalize)
    throw fields.error("norm_topk_prob", "true is not supported").legal("false");
  if (!family.normalizes) expect(fields, "scoring_func", "softmax");
}

void write_deepseek_experts(const ModelSpec& model, const ModelFamily& family, nlohmann::ordered_json& root) {
  const ExpertsSpec& e = model.experts;
  root["first_k_dense_replace"] = e.count > 0 ? e.dense_layers : model.layers;
  root["n_routed_experts"] = e.count > 0 ? nlohmann::ordered_json(e.count) : nullptr;
  if (e.count == 0) return;
  root["num_experts_per_tok"] = e.choices;
  root["moe_intermediate_size"] = e.ffn;
  root["n_shared_experts"] = e.shared;
  root["scoring_func"] = e.scoring;
  root["topk_method"] = family.normalizes ? "noaux_tc" : e.groups > 1 ? "group_limited_greedy" : "greedy";
  root["norm_topk_prob"] = e.normalize;
  root["routed_scaling_factor"] = e.scale;
  root["n_group"] = e.groups;
  root["topk_group"] = e.group_choices;
  root["moe_layer_freq"] = 1;
}

void read_windows(const JsonFields& fields, const ModelFamily& family, ModelSpec& model) {
  if (family.windows == Windows::kNone) return;
  const bool off = family.windows == Windows::kFrom && !fields.boolean("use_sliding_window", false);
  const std::int32_t window = off || fields.find("sliding_window") == nullptr
                                  ? 0
                                  : positive(fields, "sliding_window", limits::kSequence);
  std::vector<bool> has(static_cast<std::size_t>(model.layers), window > 0);
  if (const nlohmann::json* types = fields.find("layer_types"); types != nullptr) {
    if (!types->is_array() || types->size() != has.size())
      throw fields.error("layer_types", "is no list with an entry for each layer");
    for (std::size_t l = 0; l < has.size(); ++l) {
      has[l] = (*types)[l] == "sliding_attention";
      if (!has[l] && (*types)[l] != "full_attention")
        throw fields.error("layer_types", (*types)[l].dump() + " is not supported")
            .legal("full_attention, sliding_attention");
      if (has[l] && window == 0)
        throw fields.error("sliding_window", "is missing or switched off, and a layer has such a window");
    }
  } else if (family.windows == Windows::kFrom && window > 0) {
    const std::int32_t from = natural_or(fields, "max_window_layers", 0, limits::kSequence);
    for (std::size_t l = 0; l < has.size(); ++l) has[l] = static_cast<std::int32_t>(l) >= from;
  }
  const auto windows = std::ranges::count(has, true);
  model.window = windows > 0 ? window : 0;
  if (windows > 0 && windows < std::ssize(has))
    model.window_layers =
        layers_that(0, model.layers, [&](std::int32_t l) { return has[static_cast<std::size_t>(l)]; });
}

void write_windows(const ModelSpec& model, const ModelFamily& family, nlohmann::ordered_json& root) {
  if (family.windows == Windows::kNone) return;
  root["sliding_window"] = model.window > 0 ? nlohmann::ordered_json(model.window) : nullptr;
  if (family.windows == Windows::kFrom) {
    root["use_sliding_window"] = model.window > 0;
    std::int32_t from = 0;
    while (from < model.layers && model.window_of(from) == 0) ++from;
    root["max_window_layers"] = from;
  }
  if (model.window_layers.empty()) return;
  root["layer_types"] = nlohmann::json::array();
  for (std::int32_t l = 0; l < model.layers; ++l)
    root["layer_types"].push_back(model.window_of(l) > 0 ? "sliding_attention" : "full_attention");
}

void read_gpt2(const JsonFields& fields, ModelSpec& model) {
  const std::string act = fields.string("activation_function", "gelu_new");
  if (act != "gelu_new" && act != "gelu_pytorch_tanh")  // two names of the same function
    throw fields.error("activation_function", "\"" + act + "\" is not supported").legal("gelu_new");
  for (const char* off : {"scale_attn_by_inverse_layer_idx", "add_cross_attention"})
    if (fields.boolean(off, false)) throw fields.error(off, "true is not supported").legal("false");
  if (!fields.boolean("scale_attn_weights", true))
    throw fields.error("scale_attn_weights", "false is not supported").legal("true");
  model.layers = positive(fields, "n_layer", limits::kLayers);
  model.hidden = positive(fields, "n_embd", limits::kHidden);
  model.heads = model.kv_heads = positive(fields, "n_head", limits::kHeads);
  if (model.hidden % model.heads != 0) throw fields.error("n_head", "does not divide n_embd");
  model.head_dim = model.hidden / model.heads;
  model.ffn = positive_or(fields, "n_inner", std::int64_t{4} * model.hidden, limits::kFfn);
  model.sequence = positive_or(fields, "n_positions", 1024, limits::kSequence);
  model.norm_eps = positive_real(fields, "layer_norm_epsilon", 1e-5);
}

void write_gpt2(const ModelSpec& model, nlohmann::ordered_json& root) {
  root["activation_function"] = "gelu_new";
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) root[dropout] = 0.0;
  root["layer_norm_epsilon"] = model.norm_eps;
  root["n_embd"] = model.hidden;
  root["n_head"] = model.heads;
  root["n_inner"] = model.ffn;
  root["n_layer"] = model.layers;
  root["n_positions"] = std::max(model.positions, model.sequence);
}

ExpertsSpec read_own_experts(const JsonFields& fields, std::int32_t layers) {
  ExpertsSpec e;
  e.count = positive(fields, "count", limits::kExperts);
  e.choices = positive(fields, "choices", limits::kExperts);
  e.ffn = positive(fields, "ffn", limits::kFfn);
  e.shared = natural_or(fields, "shared", 0, limits::kSharedExperts);
  e.dense_layers = natural_or(fields, "dense_layers", 0, limits::kLayers);
  if (const std::set<std::int32_t> dense = read_layers(fields, "dense", layers); !dense.empty())
    e.dense = layers_that(e.dense_layers, layers, [&](std::int32_t l) { return dense.contains(l); });
  e.scoring = read_scoring(fields, "scoring", "softmax");
  e.normalize = fields.boolean("normalize", true);
  e.scale = positive_real(fields, "scale", 1);
  e.groups = positive_or(fields, "groups", 1, limits::kExperts);
  e.group_choices = positive_or(fields, "group_choices", 1, limits::kExperts);
  e.group_best = positive_or(fields, "group_best", 2, 2);
  return e;
}

nlohmann::ordered_json own_experts(const ExpertsSpec& e, std::int32_t layers) {
  nlohmann::json dense = nlohmann::json::array();
  for (std::int32_t l = e.dense_layers; l < layers; ++l)
    if (!e.in_layer(l)) dense.push_back(l);
  return {{"count", e.count},
          {"choices", e.choices},
          {"ffn", e.ffn},
          {"shared", e.shared},
          {"dense_layers", e.dense_layers},
          {"scoring", e.scoring},
          {"normalize", e.normalize},
          {"scale", e.scale},
          {"groups", e.groups},
          {"group_choices", e.group_choices},
          {"group_best", e.group_best},
          {"dense", dense}};
}

}  // namespace hyperrun
