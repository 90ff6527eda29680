// Converts Hugging Face's config.json of the families in runtime/ir/families.h to and from ModelSpec.
//
// Fields that our graph does not compute (another activation, biases that a family has not) are refused by
// name rather than ignored: Error(kBadCheckpoint) at "PATH: FIELD".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/ir/job.h"

namespace hyperrun {

// The eos ids: a sequence ends at any of them. Files have one number, a list, or null for none.
struct EndsOfText {
  std::vector<std::int32_t> tokens = {};
  bool listed = false;  // the file has a list, even of one id

  bool operator==(const EndsOfText&) const = default;
};

struct HfConfig {
  ModelSpec model;            // `sequence` is max_position_embeddings, or n_positions
  DType dtype = DType::kF32;  // torch_dtype, the data type of the stored weights
  EndsOfText ends_of_text = {};
  std::optional<std::int32_t> begin_of_text = {};  // bos id, if it is not the first eos id

  bool operator==(const HfConfig&) const = default;
};

std::string to_config_json(const HfConfig& config);

// `path` is a config.json or the directory that holds it. kMissingFile when it is not there.
HfConfig read_config(const std::filesystem::path& path);

}  // namespace hyperrun
