// A config.json that is written back as it was given, but for what has changed.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/model/checkpoint/hf_config.h"

namespace hyperrun {

// The text of the config.json `given`, with the fields of `config` whose meaning is another. Other fields
// keep their values and their order, also those that hyperrun does not know. max_position_embeddings stays
// unless the model's sequences are longer. "quantization_config" goes, as weights are saved dequantized.
// Throws kBadCheckpoint or kMissingFile.
std::string to_config_json(HfConfig config, const std::filesystem::path& given);

}  // namespace hyperrun
