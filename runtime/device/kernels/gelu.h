// The Gaussian error linear unit by its approximation with tanh (Hendrycks and Gimpel 2016), of GPT-2:
// y = x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). Arrays of a call have one format.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

void gelu(std::int64_t n, ConstArray x, Array y);                           // y may be x
void gelu_backward(std::int64_t n, ConstArray x, ConstArray dy, Array dx);  // dx may be x or dy

}  // namespace hyperrun::kernels
