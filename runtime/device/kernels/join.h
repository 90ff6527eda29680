// Rows put together from two, of which the second may serve several of the first. Operands of a call have one
// format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// a [rows, repeat, left], b [rows, right] -> y [rows, repeat, left + right].
void join(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right, ConstArray a,
          ConstArray b, Array y);
// dy -> da, db (the sum over what repeats it).
void join_backward(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right,
                   ConstArray dy, Array da, Array db);

}  // namespace hyperrun::kernels
