// Sizes of published models, from their config.json files on the hub.
#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/frameworks/models.h"

namespace hyperrun::frameworks {
namespace {

struct Known {
  std::string_view name;        // the end of its name on the hub, in small letters
  std::string_view titan = {};  // "MODEL FLAVOR" of torchtitan
  std::string_view family = "llama";
  std::int32_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  double theta = 10000, eps = 1e-5;
  bool tied = false;
  std::int32_t experts = 0, choices = 0, expert_ffn = 0, shared = 0, dense = 0;
};

constexpr std::array kKnown{
    Known{"llama-2-7b", "", "llama", 32, 4096, 32, 32, 128, 11008, 32000},
    Known{"llama-2-13b", "", "llama", 40, 5120, 40, 40, 128, 13824, 32000},
    Known{"llama-2-70b", "", "llama", 80, 8192, 64, 8, 128, 28672, 32000},
    Known{"llama-3-8b", "", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 500000},
    Known{"llama-3-70b", "", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 500000},
    Known{"llama-3.1-8b", "llama3 8B", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 500000},
    Known{"llama-3.1-70b", "llama3 70B", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 500000},
    Known{"llama-3.3-70b", "", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 500000},
    Known{"llama-3.1-405b", "llama3 405B", "llama", 126, 16384, 128, 8, 128, 53248, 128256, 500000},
    Known{"llama-3.2-1b", "", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 500000, 1e-5, true},
    Known{"llama-3.2-3b", "", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 500000, 1e-5, true},
    Known{"mistral-7b", "", "mistral", 32, 4096, 32, 8, 128, 14336, 32000},
    Known{"mixtral-8x7b", "", "mixtral", 32, 4096, 32, 8, 128, 14336, 32000, 1e6, 1e-5, false, 8, 2, 14336},
    Known{"mixtral-8x22b", "", "mixtral", 56, 6144, 48, 8, 128, 16384, 32768, 1e6, 1e-5, false, 8, 2, 16384},
    Known{"qwen2.5-0.5b", "", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 1e6, 1e-6, true},
    Known{"qwen2.5-1.5b", "", "qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 1e6, 1e-6, true},
    Known{"qwen2.5-3b", "", "qwen2", 36, 2048, 16, 2, 128, 11008, 151936, 1e6, 1e-6, true},
    Known{"qwen2.5-7b", "", "qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 1e6, 1e-6},
    Known{"qwen2.5-14b", "", "qwen2", 48, 5120, 40, 8, 128, 13824, 152064, 1e6, 1e-6},
    Known{"qwen2.5-32b", "", "qwen2", 64, 5120, 40, 8, 128, 27648, 152064, 1e6, 1e-6},
    Known{"qwen2.5-72b", "", "qwen2", 80, 8192, 64, 8, 128, 29568, 152064, 1e6, 1e-6},
    Known{"qwen3-0.6b", "qwen3 0.6B", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 1e6, 1e-6, true},
    Known{"qwen3-1.7b", "qwen3 1.7B", "qwen3", 28, 2048, 16, 8, 128, 6144, 151936, 1e6, 1e-6, true},
    Known{"qwen3-4b", "qwen3 4B", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 1e6, 1e-6, true},
    Known{"qwen3-8b", "qwen3 8B", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 1e6, 1e-6},
    Known{"qwen3-14b", "qwen3 14B", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 1e6, 1e-6},
    Known{"qwen3-32b", "qwen3 32B", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 1e6, 1e-6},
    Known{"qwen3-30b-a3b", "qwen3 30B-A3B", "qwen3_moe", 48, 2048, 32, 4, 128, 6144, 151936, 1e6, 1e-6, false,
          128, 8, 768},
    Known{"qwen3-235b-a22b", "qwen3 235B-A22B", "qwen3_moe", 94, 4096, 64, 4, 128, 12288, 151936, 1e6, 1e-6,
          false, 128, 8, 1536},
    Known{"deepseek-v2-lite", "deepseek_v3 16B", "deepseek_v2", 27, 2048, 16, 16, 192, 10944, 102400, 10000,
          1e-6, false, 64, 6, 1408, 2, 1},
    Known{"moonlight-16b-a3b", "", "deepseek_v3", 27, 2048, 16, 16, 192, 11264, 163840, 50000, 1e-5, false,
          64, 6, 1408, 2, 1},
    Known{"deepseek-v2", "deepseek_v3 236B", "deepseek_v2", 60, 5120, 128, 128, 192, 12288, 102400, 10000,
          1e-6, false, 160, 6, 1536, 2, 1},
    Known{"deepseek-v3", "deepseek_v3 671B", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280, 10000,
          1e-6, false, 256, 8, 2048, 1, 3},
    Known{"deepseek-v3.1", "", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280, 10000, 1e-6, false, 256,
          8, 2048, 1, 3},
    Known{"deepseek-r1", "", "deepseek_v3", 61, 7168, 128, 128, 192, 18432, 129280, 10000, 1e-6, false, 256,
          8, 2048, 1, 3},
    Known{"kimi-k2", "", "deepseek_v3", 61, 7168, 64, 64, 192, 18432, 163840, 50000, 1e-6, false, 384, 8,
          2048, 1, 1},
    Known{"gpt2", "", "gpt2", 12, 768, 12, 12, 64, 3072, 50257, 10000, 1e-5, true},
    Known{"gpt2-xl", "", "gpt2", 48, 1600, 25, 25, 64, 6400, 50257, 10000, 1e-5, true},
};

RopeScaling llama_scaling(double factor) {
  RopeScaling s;
  s.factor = factor, s.original_sequence = 8192;
  return s;
}

// Fills in what all published models of a family share besides their sizes.
void complete(ModelSpec& m) {
  if (m.name == "deepseek_v2" || m.name == "deepseek_v3") {
    const bool large = m.hidden > 2048;
    m.latent = {large ? 1536 : 0, 512, 128, 64, 128};
    const bool sigmoid = m.vocab != 102400;
    m.experts.scoring = sigmoid ? "sigmoid" : "softmax";
    m.experts.normalize = sigmoid;
    m.experts.scale = sigmoid ? 2.5 : large ? 16 : 1;
    m.experts.bias_rate = sigmoid ? 1e-3 : 0;
    m.experts.group_best = m.name == "deepseek_v2" ? 1 : 2;
    if (m.experts.count == 256) m.experts.groups = 8, m.experts.group_choices = 4;
    if (m.experts.count == 160) m.experts.groups = 8, m.experts.group_choices = 3;
    if (m.vocab == 163840) m.experts.scale = large ? 2.827 : 2.446;
  }
}

ModelSpec model_of(const Known& k) {
  ModelSpec m;
  m.name = k.family;
  m.layers = k.layers, m.hidden = k.hidden, m.heads = k.heads, m.kv_heads = k.kv_heads,
  m.head_dim = k.head_dim;
  m.ffn = k.ffn, m.vocab = k.vocab, m.rope_theta = k.theta, m.norm_eps = k.eps, m.tied_head = k.tied;
  m.experts.count = k.experts;
  if (k.experts > 0)
    m.experts.choices = k.choices, m.experts.ffn = k.expert_ffn, m.experts.shared = k.shared,
    m.experts.dense_layers = k.dense;
  if (k.name.starts_with("llama-3.1") || k.name.starts_with("llama-3.3")) m.rope_scaling = llama_scaling(8);
  if (k.name.starts_with("llama-3.2")) m.rope_scaling = llama_scaling(32);
  complete(m);
  return m;
}

// Words that name a form of a model and change no size.
constexpr std::array<std::string_view, 11> kForms{"instruct", "chat", "base", "hf",       "v0.1", "v0.2",
                                                  "v0.3",     "2507", "meta", "thinking", "0528"};

std::string plain(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  std::string text;
  for (const char c : name.substr(name.rfind('/') + 1))
    text += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view form : kForms) {
      const std::string tail = "-" + std::string(form), head = std::string(form) + "-";
      if (text.ends_with(tail)) text.resize(text.size() - tail.size()), again = true;
      if (text.starts_with(head)) text.erase(0, head.size()), again = true;
    }
  }
  return text;
}

bool equal(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::optional<ModelSpec> known_model(std::string_view name) {
  for (const Known& k : kKnown)
    if (!k.titan.empty() && equal(k.titan, name)) return model_of(k);
  const std::string wanted = plain(name);
  for (const Known& k : kKnown)
    if (wanted == k.name || wanted == "meta-" + std::string(k.name)) return model_of(k);
  return std::nullopt;
}

std::vector<std::string_view> known_models() {
  std::vector<std::string_view> list;
  for (const Known& k : kKnown) list.push_back(k.name);
  return list;
}

std::optional<NamedModel> torchtitan_name(const ModelSpec& model) {
  for (const Known& k : kKnown) {
    if (k.titan.empty()) continue;
    ModelSpec same = model_of(k);
    same.sequence = model.sequence;
    // How experts are balanced and positions scaled is no matter of a flavor's sizes.
    same.experts.aux_loss = model.experts.aux_loss, same.experts.bias_rate = model.experts.bias_rate;
    same.rope_scaling = model.rope_scaling, same.mtp = model.mtp;
    if (same == model)
      return NamedModel{k.titan.substr(0, k.titan.find(' ')), k.titan.substr(k.titan.find(' ') + 1)};
  }
  return std::nullopt;
}

}  // namespace hyperrun::frameworks
