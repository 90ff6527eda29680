#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/joined.h"
#include "runtime/model/checkpoint/foreign_weights.h"
#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/model/checkpoint/safetensors_header.h"
#include "runtime/model/checkpoint/tensor_names.h"

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

// The number of shards that a shard's name tells: 3 of "model-00001-of-00003.safetensors". 0: it is no shard.
int shards_of(const std::string& name) {
  constexpr std::string_view kBegin = "model-", kOf = "-of-", kEnd = ".safetensors";
  const std::size_t of = name.find(kOf);
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || of == std::string::npos) return 0;
  return std::atoi(name.c_str() + of + kOf.size());
}

Error missing_shards(const fs::path& place, std::size_t all, const std::vector<std::string>& missing) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> shown(
      missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(std::min(missing.size(), kShown)));
  if (missing.size() > kShown) shown.push_back(fmt::format("{} more", missing.size() - kShown));
  return Error(Code::kMissingFile, fmt::format("{} of the {} shards {} not there: {}", missing.size(), all,
                                               missing.size() == 1 ? "is" : "are", joined(shown)))
      .at(place.string())
      .fix("copy or download what is missing; a download that was cut short can be repeated");
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace

SafetensorsReader::SafetensorsReader(const fs::path& path) : path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    path.extension() == ".json" ? add_index(path) : add_file(path);
  else if (fs::exists(path / kIndex, error))
    add_index(path / kIndex);
  else if (fs::exists(path / kSingle, error))
    add_file(path / kSingle);
  else if (!add_shards(path))
    refuse_folder(path);
}

void SafetensorsReader::add_file(const fs::path& file) {
  auto mapping = std::make_shared<const MappedFile>(file);
  refuse_foreign_file(mapping->bytes(), file);
  const auto [text, data] = split(mapping->bytes(), file.string());
  SafetensorsHeader header = decode_header(text, std::ssize(data), file.string());
  if (files_.empty()) metadata_ = std::move(header.metadata);
  for (PlacedTensor& tensor : header.tensors) {
    const auto bytes =
        data.subspan(static_cast<std::size_t>(tensor.begin), static_cast<std::size_t>(tensor.info.bytes()));
    tensor.info.name = without_wrappers(tensor.info.name);
    std::string name = tensor.info.name;
    if (!tensors_.try_emplace(name, TensorView{std::move(tensor.info), bytes}).second)
      throw Error(Code::kBadCheckpoint, "the tensor is in another shard as well, or under another prefix")
          .at(file.string() + ": " + name);
  }
  files_.push_back(std::move(mapping));
}

void SafetensorsReader::add_index(const fs::path& index) {
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
  std::vector<std::string> missing;
  for (const auto& [shard, names] : names_of_shard)
    if (std::error_code error; !fs::exists(index.parent_path() / shard, error)) missing.push_back(shard);
  if (!missing.empty()) throw missing_shards(index, names_of_shard.size(), missing);
  for (const auto& [shard, names] : names_of_shard) {
    add_file(index.parent_path() / shard);
    for (const std::string& name : names)
      if (find(without_wrappers(name)) == nullptr)
        throw Error(Code::kBadCheckpoint, "the index places the tensor in " + shard + ", which lacks it")
            .at(index.string() + ": " + name)
            .fix("take index and shards of one version of the checkpoint");
  }
}

// Shards name their number themselves, so that the index can be done without. False: there is none.
bool SafetensorsReader::add_shards(const fs::path& directory) {
  std::error_code error;
  int all = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error))
    all = std::max(all, shards_of(entry.path().filename().string()));
  std::vector<std::string> shards, missing;
  for (int shard = 1; shard <= all; ++shard) {
    shards.push_back(fmt::format("model-{:05}-of-{:05}.safetensors", shard, all));
    if (!fs::exists(directory / shards.back(), error)) missing.push_back(shards.back());
  }
  if (!missing.empty()) throw missing_shards(directory, shards.size(), missing);
  for (const std::string& shard : shards) add_file(directory / shard);
  return !shards.empty();
}

const TensorView* SafetensorsReader::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const TensorView* SafetensorsReader::resolve(std::string_view name) const {
  const TensorView* tensor = find(name);
  const std::size_t dot = name.find('.');
  return tensor == nullptr && dot != std::string_view::npos ? find(name.substr(dot + 1)) : tensor;
}

const TensorView& SafetensorsReader::get(std::string_view name, std::span<const std::int64_t> shape) const {
  const std::string place = path_.string() + ": " + std::string(name);
  const TensorView* tensor = resolve(name);
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
