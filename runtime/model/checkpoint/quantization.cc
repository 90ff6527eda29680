#include "runtime/model/checkpoint/quantization.h"

#include <fmt/core.h>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/checkpoint/numbers.h"

namespace hyperrun {
namespace {

constexpr std::string_view kScales = "_scale_inv";
constexpr const char* kFloat8 = "F8_E4M3";

Error refused(const std::string& place, std::string cause) {
  return Error(Code::kBadCheckpoint, std::move(cause))
      .at(place)
      .legal("no quantization, or \"fp8\" in blocks (F8_E4M3 with weight_scale_inv)")
      .fix("take the model's weights that are not quantized (float32, float16 or bfloat16)");
}

std::int64_t side(const nlohmann::json& list, std::size_t index, const JsonFields& fields) {
  const nlohmann::json& value = list[index];
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() == 0 ||
      value.get<std::uint64_t>() > (std::uint64_t{1} << 31))
    throw fields.error("weight_block_size", list.dump() + " is no size of a block").legal("[128, 128]");
  return value.get<std::int64_t>();
}

std::int64_t blocks(std::int64_t length, std::int64_t block) { return (length + block - 1) / block; }

}  // namespace

ScaleBlock read_scale_block(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const nlohmann::json root = read_json(file);
  const nlohmann::json* config = JsonFields(root, file.string()).find(kQuantization);
  if (config == nullptr) return {};
  const std::string place = file.string() + ": " + kQuantization;
  const JsonFields fields(*config, place);
  std::string method = fields.string("quant_method", "");
  if (method.empty() && (fields.boolean("load_in_4bit", false) || fields.boolean("load_in_8bit", false)))
    method = "bitsandbytes";
  if (method != "fp8")
    throw refused(place + ": quant_method",
                  method.empty() ? "the weights are quantized, and the file does not say how"
                                 : fmt::format("weights quantized by \"{}\" are not supported", method));
  if (const std::string format = fields.string("fmt", "e4m3"); format != "e4m3")
    throw refused(place + ": fmt", "\"" + format + "\" is not supported");
  const nlohmann::json* block = fields.find("weight_block_size");
  if (block == nullptr) return {};
  if (!block->is_array() || block->size() != 2)
    throw fields.error("weight_block_size", "must be two numbers").legal("[128, 128]");
  return {side(*block, 0, fields), side(*block, 1, fields)};
}

std::string scales_name(std::string_view weight) { return std::string(weight) + std::string(kScales); }
bool is_scales(std::string_view name) { return name.ends_with(kScales); }
bool is_float8(const TensorInfo& info) { return info.foreign && info.foreign->name == kFloat8; }

std::vector<float> dequantized(const TensorView& weight, const TensorView& scales, const ScaleBlock& block,
                               const std::string& place) {
  const std::vector<std::int64_t>& shape = weight.info.shape;
  const std::vector<std::int64_t>& have = scales.info.shape;
  if (shape.size() != 2) throw refused(place, "float8 in a tensor that is no matrix is not supported");
  const std::vector<std::int64_t> wanted{blocks(shape[0], block.rows), blocks(shape[1], block.columns)};
  const bool one = scales.info.elements() == 1;
  if ((!one && have != wanted) || scales.info.foreign || scales.info.dtype == DType::kI32)
    throw Error(Code::kBadCheckpoint, fmt::format("the scales have shape [{}]", joined(have)))
        .at(place)
        .legal(fmt::format("[{}] floats, one for each block of {} x {}", joined(wanted), block.rows,
                           block.columns));
  const std::int64_t element = size_of(scales.info.dtype);
  std::vector<float> numbers(static_cast<std::size_t>(weight.info.elements()));
  std::size_t at = 0;
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (std::int64_t column = 0; column < shape[1]; ++column, ++at) {
      const std::int64_t scale = one ? 0 : row / block.rows * wanted[1] + column / block.columns;
      numbers[at] = f8_e4m3_to_f32(static_cast<std::uint8_t>(weight.data[at])) *
                    number_at(scales.data.data() + scale * element, scales.info.dtype);
    }
  return numbers;
}

}  // namespace hyperrun
