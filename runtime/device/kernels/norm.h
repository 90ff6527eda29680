// Root-mean-square norm: y = x w / sqrt(mean(x^2) + eps), row by row. Rows may be split over devices: each
// holds `width` of their `whole` elements, and the sums are over the whole rows. Arrays of a call have one
// format; sums and dw are float32.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct NormShape {
  std::int64_t rows = 0, width = 0, whole = 0;
  float eps = 0;
};

// x [rows, width] -> squares [rows]: the sum of x^2 over this part of each row.
void row_squares(std::int64_t rows, std::int64_t width, ConstArray x, float* squares);

// x, y [rows, width] (y may be x), w [width], squares [rows] of the whole rows.
void rms_norm(const NormShape& shape, ConstArray x, ConstArray w, const float* squares, Array y);

// dy, x [rows, width], w [width] -> dots [rows]: the sum of dy x w over this part of each row.
void rms_norm_dots(std::int64_t rows, std::int64_t width, ConstArray dy, ConstArray x, ConstArray w,
                   float* dots);

// squares, dots [rows] of the whole rows. dx = addend + gradient through the norm; addend [rows, width] is
// what arrives by the residual path, may be nullptr (zero). dx may be addend or dy. dw [width] is
// overwritten, or added to when `accumulate_dw`.
void rms_norm_backward(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w,
                       const float* squares, const float* dots, ConstArray addend, Array dx, float* dw,
                       bool accumulate_dw);

}  // namespace hyperrun::kernels
