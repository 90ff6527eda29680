#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/model/checkpoint/safetensors_header.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Splits a file into header text and data; the length word is checked against the file.
std::pair<std::string_view, std::span<const std::byte>> split(std::span<const std::byte> file,
                                                              const std::string& place) {
  std::uint64_t length = 0;
  const auto have = file.size();
  if (have < sizeof length)
    throw Error(Code::kBadCheckpoint, fmt::format("truncated: {} bytes are no safetensors file", have))
        .at(place);
  std::memcpy(&length, file.data(), sizeof length);
  if (length > kMaxHeaderBytes || length > have - sizeof length)
    throw Error(
        Code::kBadCheckpoint,
        fmt::format("truncated or not a safetensors file: the header should have {} bytes, the file has {}",
                    length, have))
        .at(place);
  const auto body = file.subspan(sizeof length);
  return {{reinterpret_cast<const char*>(body.data()), length}, body.subspan(length)};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace

SafetensorsReader::SafetensorsReader(const fs::path& path) : path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    path.extension() == ".json" ? add_shards(path) : add_file(path);
  } else if (fs::exists(path / kIndex, error)) {
    add_shards(path / kIndex);
  } else if (fs::exists(path / kSingle, error)) {
    add_file(path / kSingle);
  } else {
    throw Error(Code::kMissingFile, std::string("holds neither ") + kSingle + " nor " + kIndex)
        .at(path.string());
  }
}

void SafetensorsReader::add_file(const fs::path& file) {
  auto mapping = std::make_shared<const MappedFile>(file);
  const auto [text, data] = split(mapping->bytes(), file.string());
  SafetensorsHeader header = decode_header(text, std::ssize(data), file.string());
  if (files_.empty()) metadata_ = std::move(header.metadata);
  for (PlacedTensor& tensor : header.tensors) {
    const auto bytes =
        data.subspan(static_cast<std::size_t>(tensor.begin), static_cast<std::size_t>(tensor.info.bytes()));
    std::string name = tensor.info.name;
    if (!tensors_.try_emplace(name, TensorView{std::move(tensor.info), bytes}).second)
      throw Error(Code::kBadCheckpoint, "the tensor is in another shard as well")
          .at(file.string() + ": " + name);
  }
  files_.push_back(std::move(mapping));
}

void SafetensorsReader::add_shards(const fs::path& index) {
  const nlohmann::json root = read_json(index);
  const JsonFields fields(root, index.string());
  const nlohmann::json& map = fields.required("weight_map");
  if (!map.is_object()) throw fields.error("weight_map", "must be a JSON object");
  std::map<std::string, std::vector<std::string>> names_of_shard;
  for (const auto& [name, shard] : map.items()) {
    // A shard is a plain name in the index's own directory: no file elsewhere is opened on its word.
    if (!shard.is_string() ||
        fs::path(shard.get<std::string>()).filename() != fs::path(shard.get<std::string>()))
      throw fields.error("weight_map",
                         "the shard of " + name + " must be the name of a file beside the index");
    names_of_shard[shard.get<std::string>()].push_back(name);
  }
  for (const auto& [shard, names] : names_of_shard) {
    add_file(index.parent_path() / shard);
    for (const std::string& name : names)
      if (find(name) == nullptr)
        throw Error(Code::kBadCheckpoint, "the index places the tensor in " + shard + ", which lacks it")
            .at(index.string() + ": " + name);
  }
}

const TensorView* SafetensorsReader::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const TensorView& SafetensorsReader::get(std::string_view name, std::span<const std::int64_t> shape) const {
  const std::string place = path_.string() + ": " + std::string(name);
  const TensorView* tensor = find(name);
  if (const std::size_t dot = name.find('.'); tensor == nullptr && dot != std::string_view::npos)
    tensor = find(name.substr(dot + 1));
  constexpr const char* kFix = "take a checkpoint of this model, or a job whose model is the checkpoint's";
  if (tensor == nullptr) throw Error(Code::kBadCheckpoint, "the tensor is missing").at(place).fix(kFix);
  if (!std::ranges::equal(tensor->info.shape, shape))
    throw Error(Code::kBadCheckpoint, "the tensor has shape " + shape_text(tensor->info.shape))
        .at(place)
        .legal(shape_text(shape))
        .fix(kFix);
  return *tensor;
}

}  // namespace hyperrun
