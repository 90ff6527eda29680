#include "runtime/model/checkpoint/safetensors_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "data and length word are little-endian");

namespace {

struct DTypeRow {
  DType dtype;
  const char* name;
};
constexpr std::array kDTypes{DTypeRow{DType::kF32, "F32"}, DTypeRow{DType::kBF16, "BF16"},
                             DTypeRow{DType::kF16, "F16"}, DTypeRow{DType::kI32, "I32"}};

const char* format_name(DType dtype) {
  return std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeRow& r) { return r.dtype == dtype; })
      ->name;
}

// The other formats of whole bytes that a file can have. Only what is used of it must be one of ours.
constexpr std::array kForeign{
    ForeignFormat{"F64", 8},     ForeignFormat{"F8_E4M3", 1}, ForeignFormat{"F8_E5M2", 1},
    ForeignFormat{"F8_E8M0", 1}, ForeignFormat{"I64", 8},     ForeignFormat{"U64", 8},
    ForeignFormat{"U32", 4},     ForeignFormat{"I16", 2},     ForeignFormat{"U16", 2},
    ForeignFormat{"I8", 1},      ForeignFormat{"U8", 1},      ForeignFormat{"BOOL", 1},
    ForeignFormat{"C64", 8}};

void parse_dtype(const JsonFields& fields, TensorInfo& info) {
  const std::string text = fields.string("dtype", "");
  for (const DTypeRow& row : kDTypes)
    if (text == row.name) {
      info.dtype = row.dtype;
      return;
    }
  for (const ForeignFormat& format : kForeign)
    if (text == format.name) {
      info.foreign = format;
      return;
    }
  throw fields.error("dtype", text.empty() ? "the field is missing" : "dtype " + text + " is not supported")
      .legal("F32, F16, BF16, I32, F8_E4M3")
      .fix("convert the checkpoint, for example with tensor.to(torch.bfloat16)");
}

std::int64_t as_size(const json& value, const JsonFields& fields, const char* field) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
    throw fields.error(field, "must be a list of sizes, which " + value.dump() + " is not");
  return value.get<std::int64_t>();
}

std::vector<std::int64_t> parse_sizes(const JsonFields& fields, const char* field) {
  const json& list = fields.required(field);
  if (!list.is_array()) throw fields.error(field, "must be a list of sizes");
  std::vector<std::int64_t> sizes;
  for (const json& value : list) sizes.push_back(as_size(value, fields, field));
  return sizes;
}

// True if the bytes of the shape do not fit an int64, even if another dimension is 0.
bool overflows(const TensorInfo& info) {
  std::int64_t bytes = info.element_bytes();
  for (const std::int64_t size : info.shape)
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) return true;
  return false;
}

PlacedTensor parse_tensor(const std::string& name, const json& entry, const std::string& place) {
  const JsonFields fields(entry, place + ": " + name);
  PlacedTensor tensor{TensorInfo{.name = name}};
  parse_dtype(fields, tensor.info);
  tensor.info.shape = parse_sizes(fields, "shape");
  if (overflows(tensor.info)) throw fields.error("shape", "too large");
  const std::vector<std::int64_t> offsets = parse_sizes(fields, "data_offsets");
  if (offsets.size() != 2 || offsets[1] < offsets[0])
    throw fields.error("data_offsets", "must be [begin, end] with begin <= end");
  tensor.begin = offsets[0];
  if (offsets[1] - offsets[0] != tensor.info.bytes())
    throw fields.error("data_offsets", fmt::format("span {} bytes, but dtype and shape need {}",
                                                   offsets[1] - offsets[0], tensor.info.bytes()));
  return tensor;
}

Metadata parse_metadata(const json& entry, const std::string& place) {
  const std::string here = place + ": __metadata__";
  if (!entry.is_object()) throw Error(Code::kBadCheckpoint, "must be a JSON object").at(here);
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) throw Error(Code::kBadCheckpoint, "must hold strings only").at(here);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

void check_coverage(const std::vector<PlacedTensor>& tensors, std::int64_t data_bytes,
                    const std::string& place) {
  std::int64_t expected = 0;
  for (const PlacedTensor& tensor : tensors) {
    if (tensor.begin != expected)
      throw Error(Code::kBadCheckpoint, fmt::format("{}: begins at byte {} instead of {}",
                                                    tensor.begin < expected ? "overlaps the tensor before it"
                                                                            : "leaves a gap before it",
                                                    tensor.begin, expected))
          .at(place + ": " + tensor.info.name);
    // begin equals the end of the one before, so the sum only overflows past any real file size.
    if (__builtin_add_overflow(expected, tensor.info.bytes(), &expected) || expected > data_bytes)
      throw Error(
          Code::kBadCheckpoint,
          fmt::format(
              "truncated: the tensor's data ends beyond the end of the file, which has {} bytes of data",
              data_bytes))
          .at(place + ": " + tensor.info.name)
          .fix("copy or download the file again");
  }
  if (expected != data_bytes)
    throw Error(Code::kBadCheckpoint,
                fmt::format("has {} bytes after its last tensor that belong to none", data_bytes - expected))
        .at(place);
}

}  // namespace

std::string encode_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  root["__metadata__"] = header.metadata;
  for (const PlacedTensor& tensor : header.tensors)
    root[tensor.info.name] = {{"dtype", format_name(tensor.info.dtype)},
                              {"shape", tensor.info.shape},
                              {"data_offsets", {tensor.begin, tensor.begin + tensor.info.bytes()}}};
  std::string text = root.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string encoded(sizeof length, '\0');
  std::memcpy(encoded.data(), &length, sizeof length);
  return encoded + text;
}

SafetensorsHeader decode_header(std::string_view text, std::int64_t data_bytes, const std::string& place) {
  const json root = parse_json(text, place);
  if (!root.is_object()) throw Error(Code::kBadCheckpoint, "the header must be a JSON object").at(place);
  SafetensorsHeader header;
  for (const auto& [name, entry] : root.items()) {
    if (name == "__metadata__")
      header.metadata = parse_metadata(entry, place);
    else
      header.tensors.push_back(parse_tensor(name, entry, place));
  }
  // An empty tensor has the place of its successor and comes before it.
  const auto by_place = [](const PlacedTensor& a, const PlacedTensor& b) {
    return std::pair(a.begin, a.info.bytes()) < std::pair(b.begin, b.info.bytes());
  };
  std::stable_sort(header.tensors.begin(), header.tensors.end(), by_place);
  check_coverage(header.tensors, data_bytes, place);
  return header;
}

}  // namespace hyperrun
