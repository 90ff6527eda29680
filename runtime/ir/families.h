// The families of models, in one table: what sets each apart from a Llama. Code asks for traits, never for a
// name, so that a further family is a further row of families.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/ir/job.h"

namespace hyperrun {

// The names of an expert's matrices in a checkpoint.
struct ExpertNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

// What a family's layers have in place of a Llama's.
enum class Experts : std::uint8_t {
  kOwn,       // none in Hugging Face; a job may add experts all the same
  kNone,      // none, and a job cannot add them
  kMixtral,   // in all layers, softmax scores, gates that add up to 1
  kQwen,      // softmax scores; some layers may have none
  kDeepseek,  // shared ones, groups, a scale; the first layers may have none
};

// Which fields of a config.json say what sees only a window.
enum class Windows : std::uint8_t {
  kNone,
  kAll,   // all layers, if sliding_window is a number
  kFrom,  // the layers from max_window_layers on, if use_sliding_window is true
};

struct ModelFamily {
  std::string_view name;           // of the model in a job; "model_type" in a config.json
  std::string_view architecture;   // in a config.json
  std::string_view meaning;        // one line for users
  std::string_view source;         // who has told about it first
  bool learned_positions = false;  // GPT-2's layers: LayerNorm, learned positions, GELU, biases
  bool latent = false;             // latent attention
  bool qk_norm = false;            // queries and keys are normed, head by head, before they turn
  bool qkv_bias = false;           // queries, keys and values have biases, always
  bool may_have_attention_bias = false;
  bool may_have_mlp_bias = false;
  bool turns_neighbours = false;  // pairs of rotary positions are neighbours, not one element of each half
  bool turns_a_part = false;      // a config.json may have a partial_rotary_factor
  bool fused = false;             // a checkpoint joins q, k, v in one matrix, and gate, up in another
  Windows windows = Windows::kNone;
  Experts experts = Experts::kOwn;
  std::string_view experts_in = "mlp.";  // the block of experts in a checkpoint
  ExpertNames expert_names = {};
  bool normalizes = true;       // what a job's experts.normalize is if it is left out
  std::int32_t group_best = 2;  // ExpertsSpec::group_best
  // A JSON object: the values of fields that a config.json may leave out, as the family's class in Hugging
  // Face has them. Sizes of matrices are not among them, because every file has these.
  std::string_view defaults = "{}";
};

std::span<const ModelFamily> families();

// Null for a name that is none of a user's.
const ModelFamily* find_family(std::string_view name);
const ModelFamily& family_of(const ModelSpec& model);

// The names, for messages: "llama, mistral, ...".
std::string family_names();

// True if queries, keys and values have biases.
bool has_qkv_bias(const ModelSpec& model);

}  // namespace hyperrun
