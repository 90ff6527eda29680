#include "runtime/ir/families.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::array kFamilies{
    ModelFamily{.name = "llama",
                .architecture = "LlamaForCausalLM",
                .meaning = "RMSNorm, RoPE, grouped-query attention, SwiGLU",
                .source = "Touvron et al. 2023",
                .may_have_attention_bias = true,
                .may_have_mlp_bias = true,
                .defaults = R"({"max_position_embeddings": 2048})"},
    ModelFamily{.name = "mistral",
                .architecture = "MistralForCausalLM",
                .meaning = "llama with a sliding window",
                .source = "Jiang et al. 2023",
                .windows = Windows::kAll,
                .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8,
                           "sliding_window": 4096})"},
    ModelFamily{
        .name = "mixtral",
        .architecture = "MixtralForCausalLM",
        .meaning = "mistral with experts",
        .source = "Jiang et al. 2024",
        .windows = Windows::kAll,
        .experts = Experts::kMixtral,
        .experts_in = "block_sparse_moe.",
        .expert_names = {"w1", "w3", "w2"},
        .defaults = R"({"max_position_embeddings": 131072, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
                           "rope_theta": 1e6, "num_local_experts": 8, "num_experts_per_tok": 2})"},
    ModelFamily{.name = "qwen2",
                .architecture = "Qwen2ForCausalLM",
                .meaning = "llama with biases on queries, keys and values",
                .source = "Yang et al. 2024",
                .qkv_bias = true,
                .windows = Windows::kFrom,
                .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 32,
                           "sliding_window": 4096, "max_window_layers": 28})"},
    ModelFamily{.name = "qwen3",
                .architecture = "Qwen3ForCausalLM",
                .meaning = "llama with a norm on each head of queries and keys",
                .source = "Yang et al. 2025",
                .qk_norm = true,
                .may_have_attention_bias = true,
                .windows = Windows::kFrom,
                .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 32, "head_dim": 128,
                           "sliding_window": 4096, "max_window_layers": 28})"},
    ModelFamily{.name = "qwen3_moe",
                .architecture = "Qwen3MoeForCausalLM",
                .meaning = "qwen3 with experts",
                .source = "Yang et al. 2025",
                .qk_norm = true,
                .may_have_attention_bias = true,
                .windows = Windows::kFrom,
                .experts = Experts::kQwen,
                .defaults = R"({"max_position_embeddings": 32768, "num_key_value_heads": 4,
                           "sliding_window": 4096, "max_window_layers": 0, "num_experts": 128,
                           "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": false,
                           "decoder_sparse_step": 1})"},
    ModelFamily{.name = "deepseek_v2",
                .architecture = "DeepseekV2ForCausalLM",
                .meaning = "latent attention, in which neighbours turn; experts of softmax scores",
                .source = "DeepSeek-AI 2024",
                .latent = true,
                .turns_neighbours = true,
                .experts = Experts::kDeepseek,
                .normalizes = false,
                .group_best = 1,
                .defaults = R"({"max_position_embeddings": 2048, "q_lora_rank": 1536, "kv_lora_rank": 512,
                           "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                           "n_routed_experts": 64, "n_shared_experts": 2, "moe_intermediate_size": 1407,
                           "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": false})"},
    ModelFamily{.name = "deepseek_v3",
                .architecture = "DeepseekV3ForCausalLM",
                .meaning = "latent attention, in which neighbours turn; balanced experts",
                .source = "DeepSeek-AI 2024",
                .latent = true,
                .turns_neighbours = true,
                .experts = Experts::kDeepseek,
                .defaults = R"({"max_position_embeddings": 4096, "q_lora_rank": 1536, "kv_lora_rank": 512,
                           "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                           "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": true})"},
    ModelFamily{.name = "phi3",
                .architecture = "Phi3ForCausalLM",
                .meaning = "mistral, whose checkpoints join matrices",
                .source = "Abdin et al. 2024",
                .turns_a_part = true,
                .fused = true,
                .windows = Windows::kAll,
                .defaults = R"({"max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
                           "rms_norm_eps": 1e-5})"},
    ModelFamily{.name = "gpt2",
                .architecture = "GPT2LMHeadModel",
                .meaning = "LayerNorm, learned positions, GELU, biases; no dropout",
                .source = "Radford et al. 2019",
                .learned_positions = true,
                .experts = Experts::kNone,
                .defaults = R"({"n_positions": 1024, "tie_word_embeddings": true})"},
};

// What encoders are to code that asks for traits. Users have a block of their own for them.
constexpr ModelFamily kEncoder{.name = "encoder", .experts = Experts::kNone};

}  // namespace

std::span<const ModelFamily> families() { return kFamilies; }

const ModelFamily* find_family(std::string_view name) {
  const auto* found = std::ranges::find(kFamilies, name, &ModelFamily::name);
  return found == kFamilies.end() ? nullptr : found;
}

const ModelFamily& family_of(const ModelSpec& model) {
  if (model.name == kEncoder.name) return kEncoder;
  const ModelFamily* const family = find_family(model.name);
  HR_CHECK(family != nullptr, "no model is called " + model.name);
  return *family;
}

std::string family_names() {
  std::string names;
  for (const ModelFamily& f : kFamilies) names += (names.empty() ? "" : ", ") + std::string(f.name);
  return names;
}

bool has_qkv_bias(const ModelSpec& model) { return model.attention_bias || family_of(model).qkv_bias; }

}  // namespace hyperrun
