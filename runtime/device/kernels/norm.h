// Norms, row by row. Of root mean squares: y = x w / sqrt(mean(x^2) + eps). Centered (LayerNorm): the same of
// x without its row's mean, plus a bias. Rows may be split over devices: each holds `width` of their `whole`
// elements, and sums are over the whole rows. Of a centered norm the sums of x are given, of the other they
// are nullptr. Its squares are of what is left of x without the mean, in a pass of their own: a mean far from
// zero costs no digits. Arrays of a call have one format; sums and dw are float32.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct NormShape {
  std::int64_t rows = 0, width = 0, whole = 0;
  float eps = 0;
};

// x [rows, width] -> sums [rows]: over this part of each row.
void row_sums(std::int64_t rows, std::int64_t width, ConstArray x, float* sums);

// x [rows, width] -> squares [rows]: the sum of x^2 over this part of each row.
void row_squares(const NormShape& shape, ConstArray x, const float* sums, float* squares);

// x, y [rows, width] (y may be x), w and bias [width], squares and sums [rows] of the whole rows. No bias:
// nullptr.
void norm(const NormShape& shape, ConstArray x, ConstArray w, const float* squares, const float* sums,
          ConstArray bias, Array y);

// dy, x [rows, width], w [width] -> over this part of each row, dots [rows]: the sum of dy x w, and, of a
// centered norm, dot_sums [rows]: the sum of dy w.
void norm_dots(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const float* sums,
               float* dots, float* dot_sums);

// Of the whole rows, [rows] each.
struct NormSums {
  const float *squares, *dots;
};
struct NormMeans {  // of a centered norm: sums of x, and of dy w
  const float *sums = nullptr, *dot_sums = nullptr;
};

// dx = addend + gradient through the norm; addend [rows, width] is what arrives by the residual path, may be
// nullptr (zero). dx may be addend or dy. dw [width] is overwritten, or added to when `accumulate_dw`.
void norm_backward(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const NormSums& of_rows,
                   const NormMeans& means, ConstArray addend, Array dx, float* dw, bool accumulate_dw);

}  // namespace hyperrun::kernels
