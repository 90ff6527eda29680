// Numbers in the formats of checkpoints, read one by one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/dtype.h"

namespace hyperrun {

// The number at `at`, which need not be aligned, as float32. `dtype` is a float.
float number_at(const std::byte* at, DType dtype);

// float8 in the format E4M3 without infinities, as PyTorch's float8_e4m3fn.
float f8_e4m3_to_f32(std::uint8_t v);

}  // namespace hyperrun
