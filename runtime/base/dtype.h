// The number formats that storage and wire know. Arithmetic is always float32.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace hyperrun {

enum class DType : std::uint8_t { kF32, kBF16, kI32 };

constexpr std::int64_t size_of(DType t) { return t == DType::kBF16 ? 2 : 4; }

constexpr std::string_view name(DType t) {
  switch (t) {
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kI32: return "i32";
  }
  return "?";
}

// bfloat16 <-> float32, round to nearest even; NaN stays NaN.
constexpr float bf16_to_f32(std::uint16_t v) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16);
}
constexpr std::uint16_t f32_to_bf16(float f) {
  auto u = std::bit_cast<std::uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

}  // namespace hyperrun
