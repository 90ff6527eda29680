#include "runtime/model/graph/model.h"

#include "runtime/base/error.h"
#include "runtime/model/graph/decoder.h"
#include "runtime/model/graph/encoder.h"
#include "runtime/model/graph/gpt.h"

namespace hyperrun {

Graph build_model(const ModelSpec& model, const ModelUse& use) {
  if (model.name == "llama") return build_decoder(model, use, {});                 // Touvron et al. 2023
  if (model.name == "qwen3") return build_decoder(model, use, {.qk_norm = true});  // Yang et al. 2025
  if (model.name == "mixtral")                                                     // Jiang et al. 2024
    return build_decoder(model, use, {.experts_in = "block_sparse_moe.", .expert_names = {"w1", "w3", "w2"}});
  if (model.name == "deepseek_v3")  // DeepSeek-AI 2024
    return build_decoder(model, use, {.turns_neighbours = true});
  if (model.name == "gpt2") return build_gpt2(model, use);        // Radford et al. 2019
  if (model.name == "encoder") return build_encoder(model, use);  // Dosovitskiy et al. 2020
  HR_CHECK(false, "no model is called " + model.name);
  return {};
}

}  // namespace hyperrun
