// Quantized weights: "quantization_config" of config.json, and float8 in blocks, as DeepSeek-V3 publishes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/model/checkpoint/safetensors.h"

namespace hyperrun {

inline constexpr const char* kQuantization = "quantization_config";

// The rows and columns of a weight that have one scale.
struct ScaleBlock {
  std::int64_t rows = 128, columns = 128;
  bool operator==(const ScaleBlock&) const = default;
};

// Reads the blocks of the config.json in `directory`; the default if there is none. Throws kBadCheckpoint for
// other quantizations than float8, which are named.
ScaleBlock read_scale_block(const std::filesystem::path& directory);

// The tensor that has the scales of `weight`. Each number of a block is multiplied by the block's scale.
std::string scales_name(std::string_view weight);
bool is_scales(std::string_view name);

// True for numbers in the format of float8 that can be read.
bool is_float8(const TensorInfo& info);

// The numbers of a weight in float8. `scales` has one for each block, or one in all. Throws kBadCheckpoint at
// `place` if their shapes do not go together.
std::vector<float> dequantized(const TensorView& weight, const TensorView& scales, const ScaleBlock& block,
                               const std::string& place);

}  // namespace hyperrun
