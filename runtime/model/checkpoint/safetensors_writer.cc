#include <numeric>
#include <set>
#include <utility>

#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/model/checkpoint/safetensors_header.h"

namespace hyperrun {

std::int64_t TensorInfo::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

SafetensorsHeader lay_out(const std::vector<TensorInfo>& tensors, Metadata metadata) {
  SafetensorsHeader header{.tensors = {}, .metadata = std::move(metadata)};
  header.metadata.emplace("format", "pt");
  std::set<std::string_view> names;
  std::int64_t end = 0;
  for (const TensorInfo& tensor : tensors) {
    HR_CHECK(names.insert(tensor.name).second && tensor.name != "__metadata__", tensor.name);
    header.tensors.push_back({tensor, end});
    end += tensor.bytes();
  }
  return header;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                                     Metadata metadata)
    : tensors_(std::move(tensors)) {
  const SafetensorsHeader header = lay_out(tensors_, std::move(metadata));
  const std::string encoded = encode_header(header);
  std::int64_t end = std::ssize(encoded);
  for (const PlacedTensor& tensor : header.tensors) {
    begin_.push_back(std::ssize(encoded) + tensor.begin);
    missing_.push_back(tensor.info.bytes());
    end += tensor.info.bytes();
  }
  file_ = std::make_unique<AtomicFile>(path, end);
  file_->write(0, std::as_bytes(std::span(encoded)));
}

void SafetensorsWriter::write(std::size_t tensor, std::int64_t offset, std::span<const std::byte> data) {
  HR_CHECK(tensor < tensors_.size());
  HR_CHECK(offset >= 0 && offset + std::ssize(data) <= tensors_[tensor].bytes(), tensors_[tensor].name);
  file_->write(begin_[tensor] + offset, data);
  missing_[tensor] -= std::ssize(data);
  HR_CHECK(missing_[tensor] >= 0, tensors_[tensor].name);
}

void SafetensorsWriter::commit() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) HR_CHECK(missing_[i] == 0, tensors_[i].name);
  file_->commit();
}

}  // namespace hyperrun
