// Reads and writes the fields of config.json that not every family has: experts, latent attention.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "runtime/ir/job.h"
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

// DeepSeek-V3: heads, experts, further predictions.
void read_deepseek(const JsonFields& fields, ModelSpec& model);
void write_deepseek(const ModelSpec& model, nlohmann::ordered_json& root);

// GPT-2, whose fields have names of their own. Dropout is ignored, because it does not change a checkpoint.
void read_gpt2(const JsonFields& fields, ModelSpec& model);
void write_gpt2(const ModelSpec& model, nlohmann::ordered_json& root);

// hyperrun's own block of experts, for families that have none in Hugging Face.
ExpertsSpec read_own_experts(const JsonFields& fields);
nlohmann::ordered_json own_experts(const ExpertsSpec& experts);

}  // namespace hyperrun
