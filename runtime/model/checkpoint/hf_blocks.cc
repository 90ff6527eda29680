#include "runtime/model/checkpoint/hf_blocks.h"

#include <fmt/core.h>

#include <algorithm>

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

ExpertsSpec read_deepseek_experts(const JsonFields& fields) {
  ExpertsSpec e;
  if (fields.find("n_routed_experts") == nullptr) return e;
  expect(fields, "topk_method", "noaux_tc");
  if (fields.integer("moe_layer_freq", 1) != 1)
    throw fields.error("moe_layer_freq", "layers without experts among the others are not supported")
        .legal("1");
  e.count = positive(fields, "n_routed_experts", limits::kExperts);
  e.choices = positive(fields, "num_experts_per_tok", limits::kExperts);
  e.ffn = positive(fields, "moe_intermediate_size", limits::kFfn);
  e.shared = natural_or(fields, "n_shared_experts", 0, limits::kSharedExperts);
  e.dense_layers = natural_or(fields, "first_k_dense_replace", 0, limits::kLayers);
  e.scoring = read_scoring(fields, "scoring_func", "sigmoid");
  e.normalize = fields.boolean("norm_topk_prob", true);
  e.scale = positive_real(fields, "routed_scaling_factor", 1);
  e.groups = positive_or(fields, "n_group", 1, limits::kExperts);
  e.group_choices = positive_or(fields, "topk_group", 1, limits::kExperts);
  if (e.count % e.groups != 0) throw fields.error("n_group", "does not divide n_routed_experts");
  if (e.group_choices > e.groups) throw fields.error("topk_group", "is above n_group");
  return e;
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
  if (fields.find("sliding_window") != nullptr)
    throw fields.error("sliding_window", "a window of attention is not supported").legal("null");
}

void write_mixtral(const ModelSpec& model, nlohmann::ordered_json& root) {
  root["intermediate_size"] = model.experts.ffn;
  root["num_local_experts"] = model.experts.count;
  root["num_experts_per_tok"] = model.experts.choices;
  root["sliding_window"] = nullptr;
}

void read_deepseek(const JsonFields& fields, ModelSpec& model) {
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
  model.experts = read_deepseek_experts(fields);
  model.mtp.layers = natural_or(fields, "num_nextn_predict_layers", 0, limits::kMtpLayers);
}

void write_deepseek(const ModelSpec& model, nlohmann::ordered_json& root) {
  const LatentSpec& l = model.latent;
  const ExpertsSpec& e = model.experts;
  root["head_dim"] = l.rope_dim;  // in this file, the width of rotary positions
  root["q_lora_rank"] = l.q_rank > 0 ? nlohmann::ordered_json(l.q_rank) : nullptr;
  root["kv_lora_rank"] = l.kv_rank;
  root["qk_nope_head_dim"] = l.nope_dim;
  root["qk_rope_head_dim"] = l.rope_dim;
  root["qk_head_dim"] = l.nope_dim + l.rope_dim;
  root["v_head_dim"] = l.value_dim;
  root["rope_interleave"] = true;
  root["num_nextn_predict_layers"] = model.mtp.layers;
  root["first_k_dense_replace"] = e.count > 0 ? e.dense_layers : model.layers;
  if (e.count == 0) return;
  root["n_routed_experts"] = e.count;
  root["num_experts_per_tok"] = e.choices;
  root["moe_intermediate_size"] = e.ffn;
  root["n_shared_experts"] = e.shared;
  root["scoring_func"] = e.scoring;
  root["topk_method"] = "noaux_tc";
  root["norm_topk_prob"] = e.normalize;
  root["routed_scaling_factor"] = e.scale;
  root["n_group"] = e.groups;
  root["topk_group"] = e.group_choices;
  root["moe_layer_freq"] = 1;
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

ExpertsSpec read_own_experts(const JsonFields& fields) {
  ExpertsSpec e;
  e.count = positive(fields, "count", limits::kExperts);
  e.choices = positive(fields, "choices", limits::kExperts);
  e.ffn = positive(fields, "ffn", limits::kFfn);
  e.shared = natural_or(fields, "shared", 0, limits::kSharedExperts);
  e.dense_layers = natural_or(fields, "dense_layers", 0, limits::kLayers);
  e.scoring = read_scoring(fields, "scoring", "softmax");
  e.normalize = fields.boolean("normalize", true);
  e.scale = positive_real(fields, "scale", 1);
  e.groups = positive_or(fields, "groups", 1, limits::kExperts);
  e.group_choices = positive_or(fields, "group_choices", 1, limits::kExperts);
  return e;
}

nlohmann::ordered_json own_experts(const ExpertsSpec& e) {
  return {{"count", e.count},
          {"choices", e.choices},
          {"ffn", e.ffn},
          {"shared", e.shared},
          {"dense_layers", e.dense_layers},
          {"scoring", e.scoring},
          {"normalize", e.normalize},
          {"scale", e.scale},
          {"groups", e.groups},
          {"group_choices", e.group_choices}};
}

}  // namespace hyperrun
