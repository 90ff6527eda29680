// Reads and writes safetensors files: u64 little-endian header length, a JSON header
// {name: {dtype, shape, data_offsets}}, the data of the tensors in row-major order. The writer needs a list
// of all tensors up front; the reader maps the file into memory.
//
// Bad files are Error(kBadCheckpoint) with the file and, if there is one, the tensor. The reader checks the
// whole header before it hands out a byte, so that no offset leads out of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/mapped_file.h"

namespace hyperrun {

// A format of numbers that files of others have, and that DType has not.
struct ForeignFormat {
  std::string_view name;  // such as "F8_E4M3"
  std::int64_t bytes = 1;

  bool operator==(const ForeignFormat&) const = default;
};

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;            // empty: a scalar
  std::optional<ForeignFormat> foreign = {};  // in place of dtype

  std::int64_t elements() const;
  std::int64_t element_bytes() const { return foreign ? foreign->bytes : size_of(dtype); }
  std::int64_t bytes() const { return elements() * element_bytes(); }

  bool operator==(const TensorInfo&) const = default;
};

using Metadata = std::map<std::string, std::string>;

// Streams tensors to disk: the file has its final size from the start and takes pieces in any order.
// Not for several threads at once.
class SafetensorsWriter {
 public:
  // Data is laid out in the order of `tensors`. Names are unique. `metadata` becomes __metadata__;
  // {"format": "pt"} is added, which Hugging Face's loader asks for.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                    Metadata metadata = {});

  // Bytes of tensor number `tensor` from its byte `offset` on. Each byte is written once.
  void write(std::size_t tensor, std::int64_t offset, std::span<const std::byte> data);
  void commit();  // once, after all bytes; until then the path is untouched

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<std::int64_t> begin_, missing_;  // by tensor: place in the file, bytes not yet written
  std::unique_ptr<AtomicFile> file_;
};

// One tensor in a mapped file. `data` need not be aligned for its type: copy, do not cast.
struct TensorView {
  TensorInfo info;
  std::span<const std::byte> data;
};

// The tensors of a checkpoint by name, from one file or from shards. Views live as long as this.
class SafetensorsReader {
 public:
  // A .safetensors file, a model.safetensors.index.json, or a directory with either
  // (model.safetensors.index.json first), or with all shards and no index. kMissingFile when there is none,
  // kBadCheckpoint for weights in another format. Names are without those of PyTorch's wrappers.
  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;  // null when absent

  // The tensor; null when absent. A model that was saved without its head has names without their first part:
  // "wte.weight" for "transformer.wte.weight".
  const TensorView* resolve(std::string_view name) const;

  // The same tensor, which must have this shape; kBadCheckpoint names what is missing or differs.
  const TensorView& get(std::string_view name, std::span<const std::int64_t> shape) const;

  const Metadata& metadata() const { return metadata_; }  // that of the (first) file
  const std::filesystem::path& path() const { return path_; }

 private:
  void add_file(const std::filesystem::path& file);
  void add_index(const std::filesystem::path& index);
  bool add_shards(const std::filesystem::path& directory);

  std::filesystem::path path_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  Metadata metadata_;
};

}  // namespace hyperrun
