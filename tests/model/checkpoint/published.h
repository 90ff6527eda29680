// Checkpoints in the forms in which other programs publish them.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {

// A tensor of a file, as raw bytes.
struct Published {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string data;
};

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// float32 values 0, 1, 2, ... times `factor`.
inline Published counted(const std::string& name, std::vector<std::int64_t> shape, float factor = 1) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i) * factor);
  return {name, "F32", std::move(shape), raw(values)};
}

// Writes a safetensors file without the help of what is tested.
inline void publish(const std::filesystem::path& path, const std::vector<Published>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const Published& t : tensors) {
    header[t.name] = {
        {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.data.size()}}};
    data += t.data;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  put_file(path, file + text + data);
}

}  // namespace hyperrun::testing
