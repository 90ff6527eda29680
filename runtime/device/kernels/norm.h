// Root-mean-square norm: y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps), row by row.
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

// x, y [rows, d] (y may be x), w [d], rstd [rows].
void rms_norm(std::int64_t rows, std::int64_t d, const float* x, const float* w, float eps, float* y,
              float* rstd);

// dy, x [rows, d], w [d], rstd [rows] of the forward pass.
// dx = addend + gradient through the norm; addend [rows, d] is what arrives by the residual path, may be
// nullptr (zero). dx may be addend or dy. dw [d] is overwritten, or added to when `accumulate_dw`.
void rms_norm_backward(std::int64_t rows, std::int64_t d, const float* dy, const float* x, const float* w,
                       const float* rstd, const float* addend, float* dx, float* dw, bool accumulate_dw);

}  // namespace hyperrun::kernels
