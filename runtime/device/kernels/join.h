// Joins rows from two arrays; a row of the second may serve several of the first. Operands of a call have one
// format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// Joins a [rows, repeat, left] and b [rows, right] to y [rows, repeat, left + right].
void join(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right, ConstArray a,
          ConstArray b, Array y);
// Computes da and db (the sum over its repetitions) from dy.
void join_backward(std::int64_t rows, std::int64_t repeat, std::int64_t left, std::int64_t right,
                   ConstArray dy, Array da, Array db);

}  // namespace hyperrun::kernels
