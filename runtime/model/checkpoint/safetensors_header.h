// The JSON header of a safetensors file, to and from a list of tensors with their places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/checkpoint/safetensors.h"

namespace hyperrun {

struct PlacedTensor {
  TensorInfo info;
  std::int64_t begin = 0;  // from the first byte after the header
};

struct SafetensorsHeader {
  std::vector<PlacedTensor> tensors;  // in the order of their places
  Metadata metadata;
};

// The header of a file whose data is laid out in the order of `tensors`, with unique names. {"format": "pt"}
// is added to `metadata`: Hugging Face's loader asks for it.
SafetensorsHeader lay_out(const std::vector<TensorInfo>& tensors, Metadata metadata = {});

// Longer headers are refused, as by the reference implementation, before memory is taken for them.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

// The length word and the JSON, padded with spaces so that the data begins at a multiple of 8.
std::string encode_header(const SafetensorsHeader& header);

// Checks all of it: names, dtypes, shapes, and that the tensors cover the `data_bytes` bytes after the
// header exactly, without gap or overlap. Error(kBadCheckpoint) at "PLACE: TENSOR".
SafetensorsHeader decode_header(std::string_view text, std::int64_t data_bytes, const std::string& place);

}  // namespace hyperrun
