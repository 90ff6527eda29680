// Passes over flat arrays. Unless stated, an output may be one of the inputs but not overlap it otherwise.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

void add(std::int64_t n, ConstArray a, ConstArray b, Array out);  // out = a + b; all of one format
void accumulate(std::int64_t n, ConstArray b, float* a);          // a += b
// sum [width] of x [rows, width], in the order of the rows; added to what is there when `accumulate`.
void sum_rows(std::int64_t rows, std::int64_t width, ConstArray x, float* sum, bool accumulate);
void scale(std::int64_t n, float factor, Array a);        // a *= factor
void copy(std::int64_t n, ConstArray from, Array to);     // of one format, not overlapping
void convert(std::int64_t n, ConstArray from, Array to);  // from any format to any, not overlapping
void clear(std::int64_t n, Array a);                      // a = 0
void fill(std::int64_t n, float value, float* a);

// Sum of x^2, accumulated in double in an order that depends on n and the vector width only.
float sum_squares(std::int64_t n, const float* x);

// y = exp(x). Within 2 ulp of the exact value (the test measures about 1); 0 below -87.3365 (no denormal
// results), infinity above 88.7228, NaN stays NaN.
void exp(std::int64_t n, const float* x, float* y);

}  // namespace hyperrun::kernels
