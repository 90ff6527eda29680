// The weights of a checkpoint, ours or another program's, as numbers in our formats.
//
// Published files differ from what a model of ours has: they are quantized, have a head that is tied as well,
// or constants. This is where such differences end, or are refused with their names: kBadCheckpoint at
// "PATH: TENSOR".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/checkpoint/quantization.h"
#include "runtime/model/checkpoint/safetensors.h"

namespace hyperrun {

// A tensor in one of our formats. `view` refers to the file or to `converted`.
struct Weight {
  TensorView view;
  std::vector<float> converted;

  Weight(TensorView v, std::vector<float> numbers) : view(std::move(v)), converted(std::move(numbers)) {}
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;
  Weight(Weight&&) = default;
};

// A tensor that a model has.
struct WantedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

class WeightsReader {
 public:
  // A folder, or a file of it. Throws what SafetensorsReader throws, and kBadCheckpoint for a quantization
  // that is not supported.
  explicit WeightsReader(const std::filesystem::path& path);

  const SafetensorsReader& tensors() const { return tensors_; }

  // The tensor, which must have this shape. float8 and float64 are converted to float32. An embedding that is
  // not there is the head, to which check() has found it tied.
  Weight read(std::string_view name, std::span<const std::int64_t> shape) const;

  // Throws unless there is every wanted tensor in its shape, and none besides. Constants, the scales of
  // quantized weights, and copies of tied weights with the same values do not count. Of an embedding and a
  // head that are tied one is enough.
  void check(std::span<const WantedTensor> wanted) const;

 private:
  std::string_view stored_name(std::string_view wanted) const;
  Weight converted(const TensorView& view) const;
  const TensorView& scales_of(const TensorView& view) const;
  void check_format(const TensorView& view) const;
  void check_copy(const TensorView& copy, const TensorView& original) const;
  std::string place_of(std::string_view tensor) const;

  SafetensorsReader tensors_;
  ScaleBlock block_;
};

}  // namespace hyperrun
