// Passes over flat arrays. Unless stated, an output may be one of the inputs but not overlap it otherwise.
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

void add(std::int64_t n, const float* a, const float* b, float* out);  // out = a + b
void accumulate(std::int64_t n, const float* b, float* a);             // a += b
void scale(std::int64_t n, float factor, float* a);                    // a *= factor
void copy(std::int64_t n, const float* from, float* to);               // not overlapping
void fill(std::int64_t n, float value, float* a);

// Sum of x^2, accumulated in double in an order that depends on n and the vector width only.
float sum_squares(std::int64_t n, const float* x);

// y = exp(x). Within 2 ulp of the exact value (the test measures about 1); 0 below -87.3365 (no denormal
// results), infinity above 88.7228, NaN stays NaN.
void exp(std::int64_t n, const float* x, float* y);

// Round to nearest even, NaN stays NaN: the same bits as f32_to_bf16 of runtime/base/dtype.h. Not in place.
void f32_to_bf16(std::int64_t n, const float* from, std::uint16_t* to);
void bf16_to_f32(std::int64_t n, const std::uint16_t* from, float* to);

}  // namespace hyperrun::kernels
