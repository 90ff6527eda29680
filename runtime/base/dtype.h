// The number formats in which tensors are stored and sent. Arithmetic is always float32.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace hyperrun {

enum class DType : std::uint8_t { kF32, kBF16, kI32, kF16 };  // kF16 occurs only in foreign checkpoints

constexpr std::int64_t size_of(DType t) { return t == DType::kBF16 || t == DType::kF16 ? 2 : 4; }

constexpr std::string_view name(DType t) {
  switch (t) {
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kI32: return "i32";
    case DType::kF16: return "f16";
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

// IEEE 754 binary16 -> float32, exactly.
constexpr float f16_to_f32(std::uint16_t v) {
  const std::uint32_t sign = (v & 0x8000u) << 16, exponent = (v >> 10) & 0x1fu, fraction = v & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent > 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

}  // namespace hyperrun
