// Reads and writes the fields of config.json that not every family has: windows, experts, latent attention.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/ir/families.h"
#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {

// A whole number from 1 (`natural_or`: 0) to `most`; `otherwise` if the field is absent.
std::int32_t positive(const JsonFields& fields, const char* field, std::int32_t most);
std::int32_t positive_or(const JsonFields& fields, const char* field, std::int64_t otherwise,
                         std::int32_t most);
std::int32_t natural_or(const JsonFields& fields, const char* field, std::int64_t otherwise,
                        std::int32_t most);
double positive_real(const JsonFields& fields, const char* field, double otherwise);

// Mixtral: all layers have experts.
void read_mixtral(const JsonFields& fields, ModelSpec& model);
void write_mixtral(const ModelSpec& model, nlohmann::ordered_json& root);

// Qwen3-MoE: some layers may have no experts.
void read_qwen_experts(const JsonFields& fields, ModelSpec& model);
void write_qwen_experts(const ModelSpec& model, nlohmann::ordered_json& root);

// DeepSeek-V2 and V3: heads; experts and further predictions.
void read_latent(const JsonFields& fields, ModelSpec& model);
void write_latent(const ModelSpec& model, nlohmann::ordered_json& root);
void read_deepseek_experts(const JsonFields& fields, const ModelFamily& family, ModelSpec& model);
void write_deepseek_experts(const ModelSpec& model, const ModelFamily& family, nlohmann::ordered_json& root);

// Sliding windows: sliding_window, and which layers have it.
void read_windows(const JsonFields& fields, const ModelFamily& family, ModelSpec& model);
void write_windows(const ModelSpec& model, const ModelFamily& family, nlohmann::ordered_json& root);

// GPT-2, whose fields have names of their own. Dropout is ignored, because it does not change a checkpoint.
void read_gpt2(const JsonFields& fields, ModelSpec& model);
void write_gpt2(const ModelSpec& model, nlohmann::ordered_json& root);

// hyperrun's own block of experts, for families that have none in Hugging Face.
ExpertsSpec read_own_experts(const JsonFields& fields, std::int32_t layers);
nlohmann::ordered_json own_experts(const ExpertsSpec& experts, std::int32_t layers);

}  // namespace hyperrun
