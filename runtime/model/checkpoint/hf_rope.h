// Reads and writes the rotary positions of a config.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/ir/families.h"
#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {

// Reads rope_theta and rope_scaling (or null), or rope_parameters of newer files, which have theta as well.
// `place` is the file. model.sequence has to be max_position_embeddings.
void read_rope(const JsonFields& fields, const std::string& place, const ModelFamily& family,
               ModelSpec& model);

// Writes rope_theta, rope_scaling and what else of the file they depend on.
void write_rope(const ModelSpec& model, const ModelFamily& family, nlohmann::ordered_json& root);

}  // namespace hyperrun
