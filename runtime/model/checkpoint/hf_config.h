// Hugging Face's config.json of Llama, Qwen3, Mixtral, DeepSeek-V3 and GPT-2, to and from ModelSpec.
//
// What our graph does not compute (rope scaling, biases, another activation) is refused by name
// rather than loaded wrongly: Error(kBadCheckpoint) at "PATH: FIELD".
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/ir/job.h"

namespace hyperrun {

struct HfConfig {
  ModelSpec model;                                 // `sequence` is max_position_embeddings, or n_positions
  DType dtype = DType::kF32;                       // torch_dtype, the format of the stored weights
  std::int32_t end_of_text = 0;                    // eos id, and bos id where that is no other
  std::optional<std::int32_t> begin_of_text = {};  // bos id where it is another

  bool operator==(const HfConfig&) const = default;
};

std::string to_config_json(const HfConfig& config);

// `path` is a config.json or the directory that holds it. kMissingFile when it is not there.
HfConfig read_config(const std::filesystem::path& path);

}  // namespace hyperrun
