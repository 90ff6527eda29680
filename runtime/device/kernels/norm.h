// Norms, row by row. RMSNorm: y = x w / sqrt(mean(x^2) + eps). Centered (LayerNorm): the same for x without
// its row's mean, plus a bias.
//
// Rows may be split over devices: each holds `width` of their `whole` elements, and sums are over the whole
// rows. A centered norm needs the sums of x; without it they are nullptr. Its squares are taken after the
// mean is subtracted, in a pass of their own, so a mean far from zero costs no digits. Arrays of a call have
// one format; sums and dw are float32.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct NormShape {
  std::int64_t rows = 0, width = 0, whole = 0;
  float eps = 0;
};

// Computes sums [rows] of x [rows, width], over this part of each row.
void row_sums(std::int64_t rows, std::int64_t width, ConstArray x, float* sums);

// Computes squares [rows]: the sum of x^2 over this part of each row.
void row_squares(const NormShape& shape, ConstArray x, const float* sums, float* squares);

// Computes y [rows, width] (which may be x) from x, w and bias [width], and the squares and sums [rows] of
// the whole rows. bias is nullptr if there is none.
void norm(const NormShape& shape, ConstArray x, ConstArray w, const float* squares, const float* sums,
          ConstArray bias, Array y);

// Computes, over this part of each row, dots [rows]: the sum of dy x w, and for a centered norm dot_sums
// [rows]: the sum of dy w.
void norm_dots(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const float* sums,
               float* dots, float* dot_sums);

// Sums over the whole rows, [rows] each.
struct NormSums {
  const float *squares, *dots;
};
struct NormMeans {  // for a centered norm: sums of x, and of dy w
  const float *sums = nullptr, *dot_sums = nullptr;
};

// Computes dx = addend + gradient through the norm. addend [rows, width] is the gradient that arrives by the
// residual path; it may be nullptr (zero). dx may be addend or dy. dw [width] is overwritten, or added to if
// `accumulate_dw`.
void norm_backward(const NormShape& shape, ConstArray dy, ConstArray x, ConstArray w, const NormSums& of_rows,
                   const NormMeans& means, ConstArray addend, Array dx, float* dw, bool accumulate_dw);

}  // namespace hyperrun::kernels
