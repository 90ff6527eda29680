// AdamW (decoupled weight decay) and clipping by the global gradient norm.
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

struct AdamW {
  float lr = 0;
  float beta1 = 0.9F, beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0;
  float bias1 = 1, bias2 = 1;  // bias_correction(beta, step)
  float grad_factor = 1;       // multiplies every gradient first (clipping)
};

// Returns 1 - beta^step, step counted from 1, in double.
float bias_correction(double beta, std::int64_t step);

// Updates w, m, v in place, in one pass:
//   g' = g * grad_factor;  m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2
//   w -= lr * ((m / bias1) / (sqrt(v / bias2) + eps) + weight_decay * w)
void adamw(std::int64_t n, const AdamW& a, const float* g, float* w, float* m, float* v);

struct ClipFactor {
  float norm = 0;    // norm of the whole gradient
  float factor = 1;  // min(1, max_norm / norm); 1 when max_norm is 0 (no clipping) or the norm is 0
};

// A sum that is not finite gives a norm that is not finite, which the caller must treat as an error.
ClipFactor clip_factor(float sum_of_squares, float max_norm);

}  // namespace hyperrun::kernels
