// Kernels over flat arrays. Unless stated otherwise, an output may be one of the inputs but not overlap it
// otherwise.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

void add(std::int64_t n, ConstArray a, ConstArray b, Array out);  // out = a + b; all have one format
void accumulate(std::int64_t n, ConstArray b, float* a);          // a += b
// Sums x [rows, width] into sum [width], in the order of the rows; adds to its values if `accumulate`.
void sum_rows(std::int64_t rows, std::int64_t width, ConstArray x, float* sum, bool accumulate);
void scale(std::int64_t n, float factor, Array a);        // a *= factor
void copy(std::int64_t n, ConstArray from, Array to);     // both have one format and do not overlap
void convert(std::int64_t n, ConstArray from, Array to);  // from any format to any; they do not overlap
void clear(std::int64_t n, Array a);                      // a = 0
void fill(std::int64_t n, float value, float* a);

// Returns the sum of x^2, accumulated in double in an order that depends on n and the vector width only.
float sum_squares(std::int64_t n, const float* x);

// Computes y = exp(x), within 2 ulp of the exact value (the test measures about 1); 0 below -87.3365 (no
// denormal results), infinity above 88.7228, NaN stays NaN.
void exp(std::int64_t n, const float* x, float* y);

}  // namespace hyperrun::kernels
