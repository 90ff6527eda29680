#include "runtime/model/checkpoint/numbers.h"

#include <cstring>
#include <limits>

namespace hyperrun {

float number_at(const std::byte* at, DType dtype) {
  if (dtype == DType::kF32) {
    float wide = 0;
    std::memcpy(&wide, at, sizeof wide);
    return wide;
  }
  std::uint16_t narrow = 0;
  std::memcpy(&narrow, at, sizeof narrow);
  return dtype == DType::kF16 ? f16_to_f32(narrow) : bf16_to_f32(narrow);
}

float f8_e4m3_to_f32(std::uint8_t v) {
  const std::uint32_t sign = (v & 0x80U) << 24, exponent = (v >> 3) & 0xfU, fraction = v & 7U;
  if (exponent == 0xf && fraction == 7) return std::numeric_limits<float>::quiet_NaN();
  // The exponent's bias is 7, float32's is 127.
  if (exponent > 0) return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (fraction << 20));
  const float subnormal = static_cast<float>(fraction) * 0x1p-9F;
  return sign != 0 ? -subnormal : subnormal;
}

}  // namespace hyperrun
