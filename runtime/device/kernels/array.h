// An Array is numbers in memory, in one of the storage formats. Kernels read them in place, compute in
// float32 and round a result once, to nearest even, when they store it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace hyperrun::kernels {

enum class Bf16 : std::uint16_t {};

template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, Bf16>;
template <Number T>
inline constexpr DType kDTypeOf = std::same_as<T, Bf16> ? DType::kBF16 : DType::kF32;

inline float to_float(float v) { return v; }
inline float to_float(Bf16 v) { return bf16_to_f32(static_cast<std::uint16_t>(v)); }
template <Number T>
T rounded(float v) {
  if constexpr (std::same_as<T, Bf16>)
    return Bf16{f32_to_bf16(v)};
  else
    return v;
}

class ConstArray {
 public:
  ConstArray(std::nullptr_t = nullptr) {}
  ConstArray(const float* at) : ConstArray(reinterpret_cast<const std::byte*>(at), DType::kF32) {}
  ConstArray(const Bf16* at) : ConstArray(reinterpret_cast<const std::byte*>(at), DType::kBF16) {}
  ConstArray(const std::byte* at, DType dtype) : at_(at), dtype_(dtype) {}

  const std::byte* data() const { return at_; }
  DType dtype() const { return dtype_; }
  template <Number T>
  const T* as() const {
    HR_CHECK(dtype_ == kDTypeOf<T> || at_ == nullptr, "an operand of another data type");
    return reinterpret_cast<const T*>(at_);
  }
  ConstArray operator+(std::int64_t n) const { return {at_ + n * size_of(dtype_), dtype_}; }

 private:
  const std::byte* at_ = nullptr;
  DType dtype_ = DType::kF32;
};

class Array {
 public:
  Array(float* at) : Array(reinterpret_cast<std::byte*>(at), DType::kF32) {}
  Array(Bf16* at) : Array(reinterpret_cast<std::byte*>(at), DType::kBF16) {}
  Array(std::byte* at, DType dtype) : at_(at), dtype_(dtype) {}
  operator ConstArray() const { return {at_, dtype_}; }

  std::byte* data() const { return at_; }
  DType dtype() const { return dtype_; }
  template <Number T>
  T* as() const {
    HR_CHECK(dtype_ == kDTypeOf<T>, "an operand of another data type");
    return reinterpret_cast<T*>(at_);
  }
  Array operator+(std::int64_t n) const { return {at_ + n * size_of(dtype_), dtype_}; }

 private:
  std::byte* at_;
  DType dtype_;
};

// Calls f with a value of the type that `dtype` names.
template <class F>
void typed(DType dtype, F f) {
  HR_CHECK(dtype != DType::kI32, "numbers of a kernel are float32 or bfloat16");
  dtype == DType::kBF16 ? f(Bf16{}) : f(0.0F);
}

}  // namespace hyperrun::kernels
