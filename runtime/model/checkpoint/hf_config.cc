#include "runtime/model/checkpoint/hf_config.h"

#include <fmt/core.h>

#include <string_view>

#include "runtime/base/error.h"
#include "runtime/ir/families.h"
#include "runtime/ir/limits.h"
#include "runtime/model/checkpoint/hf_blocks.h"
#include "runtime/model/checkpoint/hf_rope.h"
#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {

using nlohmann::json;

namespace {

// The suffix of hyperrun's own model types: families with experts that have none in Hugging Face.
constexpr std::string_view kWithExperts = "-experts";

const ModelFamily& read_family(const JsonFields& fields) {
  std::string type = fields.string("model_type", "llama");
  if (type.ends_with(kWithExperts)) type.resize(type.size() - kWithExperts.size());
  const ModelFamily* const family = find_family(type);
  if (family == nullptr)
    throw fields.error("model_type", "\"" + type + "\" is not supported")
        .legal(family_names())
        .fix(
            "if its layers are those of one of these, give a copy of the file with that model_type; a job's "
            "model "
            "block and a launch script's flags give sizes, too");
  const json* list = fields.find("architectures");
  if (list != nullptr && (!list->is_array() || list->size() != 1 || (*list)[0] != family->architecture))
    throw fields.error("architectures", list->dump() + " is not supported")
        .legal(std::string(family->architecture));
  return *family;
}

void check_off(const JsonFields& fields, const char* field) {
  if (fields.boolean(field, false)) throw fields.error(field, "true is not supported").legal("false");
}

// Refuses settings for which our graph would compute something else than the checkpoint's author did.
void check_computation(const JsonFields& fields, const ModelFamily& family) {
  const std::string act = fields.string("hidden_act", "silu");
  if (act != "silu") throw fields.error("hidden_act", "\"" + act + "\" is not supported").legal("silu");
  if (!family.may_have_attention_bias && !family.qkv_bias) check_off(fields, "attention_bias");
  if (!family.may_have_mlp_bias) check_off(fields, "mlp_bias");
  if (fields.number("attention_dropout", 0) != 0)
    throw fields.error("attention_dropout", "dropout is not supported").legal("0");
}

void read_heads(const JsonFields& fields, ModelSpec& model) {
  model.heads = positive(fields, "num_attention_heads", limits::kHeads);
  model.kv_heads = positive_or(fields, "num_key_value_heads", model.heads, limits::kHeads);
  if (model.heads % model.kv_heads != 0)
    throw fields.error("num_key_value_heads",
                       fmt::format("{} does not divide the {} attention heads", model.kv_heads, model.heads));
  if (fields.find("head_dim") == nullptr && model.hidden % model.heads != 0)
    throw fields.error("num_attention_heads", "does not divide hidden_size, and head_dim is not given");
  model.head_dim = positive_or(fields, "head_dim", model.hidden / model.heads, limits::kHeadDim);
  if (model.head_dim % 2 != 0 && fields.number("partial_rotary_factor", 1) == 1)
    throw fields.error("head_dim", "must be even for rotary positions");
}

DType read_dtype(const JsonFields& fields) {
  const std::string newer = fields.string("dtype", "float32");
  const std::string text = fields.string("torch_dtype", newer.c_str());
  if (text == "float32") return DType::kF32;
  if (text == "bfloat16") return DType::kBF16;
  if (text == "float16") return DType::kF16;
  throw fields.error("torch_dtype", "\"" + text + "\" is not supported").legal("float32, float16, bfloat16");
}

std::int32_t read_end(const JsonFields& fields, const std::string& place, const json& id,
                      std::int32_t vocab) {
  if (id.is_number_unsigned() && id.get<std::uint64_t>() < static_cast<std::uint64_t>(vocab))
    return id.get<std::int32_t>();
  throw fields.error(place.c_str(), id.dump() + " is not a token")
      .legal(fmt::format("0 to {}, a list of such, or null", vocab - 1))
      .fix("give the ids that end a text, as the tokenizer has them");
}

EndsOfText read_ends_of_text(const JsonFields& fields, std::int32_t vocab) {
  const std::string name = "eos_token_id";
  const json* value = fields.find(name.c_str());
  if (value == nullptr) return {};
  if (!value->is_array() || value->empty()) return {{read_end(fields, name, *value, vocab)}};
  EndsOfText ends{.listed = true};
  for (const json& id : *value)
    ends.tokens.push_back(read_end(fields, fmt::format("{}[{}]", name, ends.tokens.size()), id, vocab));
  return ends;
}

nlohmann::ordered_json ends_of(const EndsOfText& ends) {
  if (ends.listed) return ends.tokens;
  return ends.tokens.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(ends.tokens.front());
}

// The bos id to write. Without a token that begins a text, it is the token that ended the one before.
nlohmann::ordered_json begin_of(const HfConfig& config) {
  if (config.begin_of_text) return *config.begin_of_text;
  return ends_of({config.ends_of_text.tokens});
}

// Some files have an id that is no token; nothing depends on it.
std::optional<std::int32_t> read_begin_of_text(const JsonFields& fields, std::int32_t vocab,
                                               const EndsOfText& ends) {
  const json* id = fields.find("bos_token_id");
  if (id == nullptr || !id->is_number_unsigned()) return {};
  const auto begin = id->get<std::uint64_t>();
  if (begin >= static_cast<std::uint64_t>(vocab)) return {};
  if (!ends.tokens.empty() && begin == static_cast<std::uint64_t>(ends.tokens.front())) return {};
  return static_cast<std::int32_t>(begin);
}

void read_decoder(const JsonFields& fields, const std::string& place, const ModelFamily& family,
                  ModelSpec& m) {
  check_computation(fields, family);
  m.layers = positive(fields, "num_hidden_layers", limits::kLayers);
  m.hidden = positive(fields, "hidden_size", limits::kHidden);
  m.ffn = positive(fields, "intermediate_size", limits::kFfn);
  m.sequence = positive_or(fields, "max_position_embeddings", 2048, limits::kSequence);
  m.attention_bias = family.may_have_attention_bias && fields.boolean("attention_bias", false);
  m.mlp_bias = family.may_have_mlp_bias && fields.boolean("mlp_bias", false);
  if (family.latent)
    read_latent(fields, m);
  else
    read_heads(fields, m);
  read_windows(fields, family, m);
  if (family.experts == Experts::kMixtral) read_mixtral(fields, m);
  if (family.experts == Experts::kQwen) read_qwen_experts(fields, m);
  if (family.experts == Experts::kDeepseek) read_deepseek_experts(fields, family, m);
  if (const json* own = fields.find("experts"); own != nullptr)
    m.experts = read_own_experts(JsonFields(*own, place + ": experts"), m.layers);
  read_rope(fields, place, family, m);
  m.norm_eps = positive_real(fields, "rms_norm_eps", 1e-6);
}

void write_decoder(const ModelSpec& m, const ModelFamily& family, nlohmann::ordered_json& root) {
  root["attention_bias"] = m.attention_bias;
  root["mlp_bias"] = m.mlp_bias;
  root["attention_dropout"] = 0.0;
  root["head_dim"] = m.head_dim;
  root["hidden_act"] = "silu";
  root["hidden_size"] = m.hidden;
  root["intermediate_size"] = m.ffn;
  root["max_position_embeddings"] = m.sequence;
  root["num_attention_heads"] = m.heads;
  root["num_hidden_layers"] = m.layers;
  root["num_key_value_heads"] = m.kv_heads;
  root["rms_norm_eps"] = m.norm_eps;
  write_rope(m, family, root);
  write_windows(m, family, root);
  if (family.latent) write_latent(m, root);
  if (family.experts == Experts::kMixtral) {
    write_mixtral(m, root);
  } else if (family.experts == Experts::kQwen) {
    write_qwen_experts(m, root);
  } else if (family.experts == Experts::kDeepseek) {
    write_deepseek_experts(m, family, root);
  } else if (m.experts.count > 0) {
    root.erase("architectures");
    root["model_type"] = m.name + std::string(kWithExperts);
    root["experts"] = own_experts(m.experts, m.layers);
  }
}

}  // namespace

std::string to_config_json(const HfConfig& config) {
  const ModelSpec& m = config.model;
  nlohmann::ordered_json root = {
      {"architectures", {family_of(m).architecture}},
      {"bos_token_id", begin_of(config)},
      {"eos_token_id", ends_of(config.ends_of_text)},
      {"model_type", m.name},
      {"tie_word_embeddings", m.tied_head},
      {"torch_dtype", config.dtype == DType::kBF16 ? "bfloat16" : "float32"},
      {"vocab_size", m.vocab},
  };
  const ModelFamily& family = family_of(m);
  if (family.learned_positions)
    write_gpt2(m, root);
  else
    write_decoder(m, family, root);
  return root.dump(2) + "\n";
}

HfConfig read_config(const std::filesystem::path& path) {
  std::error_code error;
  const auto file = std::filesystem::is_directory(path, error) ? path / "config.json" : path;
  json root = read_json(file);
  const JsonFields fields(root, file.string());
  const ModelFamily& family = read_family(fields);
  // What the file leaves out is what the family's class has; null stays null.
  const json defaults = json::parse(family.defaults);
  for (const auto& [name, value] : defaults.items())
    if (!root.contains(name)) root[name] = value;
  HfConfig config;
  ModelSpec& m = config.model;
  m.name = family.name;
  if (family.learned_positions)
    read_gpt2(fields, m);
  else
    read_decoder(fields, file.string(), family, m);
  m.vocab = positive(fields, "vocab_size", limits::kVocab);
  m.tied_head = fields.boolean("tie_word_embeddings", false);
  config.dtype = read_dtype(fields);
  config.ends_of_text = read_ends_of_text(fields, m.vocab);
  config.begin_of_text = read_begin_of_text(fields, m.vocab, config.ends_of_text);
  return config;
}

}  // namespace hyperrun
