#include "runtime/model/checkpoint/weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/numbers.h"
#include "runtime/model/checkpoint/surplus.h"
#include "runtime/model/checkpoint/tensor_names.h"

namespace hyperrun {
namespace {

constexpr std::string_view kFloat64 = "F64";

std::filesystem::path folder_of(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? path : path.parent_path();
}

std::vector<float> narrowed(const TensorView& view) {
  std::vector<float> numbers(static_cast<std::size_t>(view.info.elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double wide = 0;
    std::memcpy(&wide, view.data.data() + i * sizeof wide, sizeof wide);
    numbers[i] = static_cast<float>(wide);
  }
  return numbers;
}

Weight of_numbers(const TensorView& view, std::vector<float> numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {TensorView{{view.info.name, DType::kF32, view.info.shape}, bytes}, std::move(numbers)};
}

constexpr std::string_view kHead = "lm_head.weight", kEmbeddings = "model.embed_tokens.weight",
                           kEmbeddingsOfGpt2 = "transformer.wte.weight";

bool wants_head(std::span<const WantedTensor> wanted) {
  return std::ranges::any_of(wanted, [](const WantedTensor& w) { return w.name == kHead; });
}

// The names that a model's tied weights may have, as copies of others: the head of a tied model, and the
// embedding and the head of DeepSeek's further predictions.
std::vector<std::string_view> originals_of(std::string_view copy) {
  if (copy == kHead) return {kEmbeddings, kEmbeddingsOfGpt2};
  if (copy.ends_with(".shared_head.head.weight")) return {kHead, kEmbeddings};
  if (copy.starts_with("model.layers.") && copy.ends_with(".embed_tokens.weight")) return {kEmbeddings};
  return {};
}

}  // namespace

WeightsReader::WeightsReader(const std::filesystem::path& path)
    : tensors_(path), block_(read_scale_block(folder_of(path))) {}

std::string WeightsReader::place_of(std::string_view tensor) const {
  return fmt::format("{}: {}", tensors_.path().string(), tensor);
}

Weight WeightsReader::read(std::string_view name, std::span<const std::int64_t> shape) const {
  return converted(tensors_.get(stored_name(name), shape));
}

// Programs that save a tensor with two names once take either name.
std::string_view WeightsReader::stored_name(std::string_view wanted) const {
  const bool embeddings = wanted == kEmbeddings || wanted == kEmbeddingsOfGpt2;
  return embeddings && tensors_.resolve(wanted) == nullptr && tensors_.find(kHead) != nullptr ? kHead
                                                                                              : wanted;
}

Weight WeightsReader::converted(const TensorView& view) const {
  check_format(view);
  if (!view.info.foreign) return {view, {}};
  if (view.info.foreign->name == kFloat64) return of_numbers(view, narrowed(view));
  return of_numbers(view, dequantized(view, scales_of(view), block_, place_of(scales_name(view.info.name))));
}

const TensorView& WeightsReader::scales_of(const TensorView& view) const {
  const std::string name = scales_name(view.info.name);
  if (const TensorView* scales = tensors_.find(name); scales != nullptr) return *scales;
  throw Error(Code::kBadCheckpoint, "is float8, and the checkpoint has no scales for it: " + name)
      .at(place_of(view.info.name))
      .fix("take a checkpoint that is whole, or one that is not quantized");
}

void WeightsReader::check_format(const TensorView& view) const {
  if (!view.info.foreign || view.info.foreign->name == kFloat64) return;
  if (is_float8(view.info)) {
    scales_of(view);
    return;
  }
  throw Error(Code::kBadCheckpoint, fmt::format("dtype {} is not supported", view.info.foreign->name))
      .at(place_of(view.info.name))
      .legal("F32, F16, BF16, F64, I32, and F8_E4M3 with its scales")
      .fix("convert the checkpoint, for example with tensor.to(torch.bfloat16)");
}

void WeightsReader::check(std::span<const WantedTensor> wanted) const {
  std::set<std::string, std::less<>> known;
  Mismatch mismatch{tensors_.path().string()};
  const bool tied = !wants_head(wanted);
  for (const WantedTensor& w : wanted) {
    const std::string_view name = tied ? stored_name(w.name) : w.name;
    if (tensors_.resolve(name) == nullptr) {
      mismatch.missing.push_back(w.name);
      continue;
    }
    const TensorView& view = tensors_.get(name, w.shape);
    check_format(view);
    known.insert(view.info.name);
    if (is_float8(view.info)) known.insert(scales_name(view.info.name));
  }
  for (const auto& [name, view] : tensors_.tensors()) {
    if (known.contains(name) || is_constant(name)) continue;
    const TensorView* original = nullptr;
    for (const std::string_view candidate : originals_of(name)) {
      const TensorView* there = tensors_.resolve(candidate);
      if (original == nullptr && there != nullptr && known.contains(there->info.name)) original = there;
    }
    if (original != nullptr)
      check_copy(view, *original);
    else
      mismatch.surplus.push_back(name);
  }
  mismatch.refuse();
}

void WeightsReader::check_copy(const TensorView& copy, const TensorView& original) const {
  if (copy.info == TensorInfo{copy.info.name, original.info.dtype, original.info.shape} &&
      std::ranges::equal(copy.data, original.data))
    return;
  const std::string place = place_of(copy.info.name);
  constexpr const char* kFix =
      "set \"tie_word_embeddings\": false in config.json, and tied_head: false in the job's model; or take "
      "the tensor out of the file if it is not meant";
  if (copy.info.shape != original.info.shape)
    throw Error(Code::kBadCheckpoint,
                fmt::format("the model ties it to {}, which has another shape", original.info.name))
        .at(place)
        .fix(kFix);
  const Weight a = converted(copy), b = converted(original);
  std::int64_t others = 0;
  float most = 0;
  for (std::int64_t i = 0; i < copy.info.elements(); ++i) {
    const float x = number_at(a.view.data.data() + i * size_of(a.view.info.dtype), a.view.info.dtype);
    const float y = number_at(b.view.data.data() + i * size_of(b.view.info.dtype), b.view.info.dtype);
    if (x == y) continue;
    ++others;
    most = std::max(most, std::abs(x - y));
  }
  if (others == 0) return;
  throw Error(Code::kBadCheckpoint,
              fmt::format("the model ties it to {}, but {} of its {} numbers are others, by up to {:.3g}",
                          original.info.name, others, copy.info.elements(), most))
      .at(place)
      .fix(kFix);
}

}  // namespace hyperrun
