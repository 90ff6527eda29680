// Cross entropy over a vocabulary that may be split over devices. The devices exchange statistics of rows
// between its steps:
//
//   softmax_stats        each device: e = exp(l - m_local), m_local, s_local = sum e, t_local
//     all-reduce max     m = max of m_local
//   rescale_sums         each device: s_adj = s_local * exp(m_local - m)
//     all-reduce sum     s = sum of s_adj, t = sum of t_local
//   cross_entropy_loss   (log s + m - t) * weight of the row, summed over the rows
//   log_probs            t - m - log s, of each row
//   cross_entropy_backward  dlogits = (softmax - onehot) * scale * weight of the row, in place over e
//
// On one device m = m_local, s = s_local, t = t_local. A row whose target is negative is ignored: it adds
// nothing to the loss and its gradient is zero. Logits, e and dlogits have one format; statistics are
// float32, and use e before it is rounded.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// Sets the logits [rows, vocab_local] of the columns from `first` on to the lowest number of their format, so
// that they have no probability. `first` may lie outside of the columns.
void mask_columns(std::int64_t rows, std::int64_t vocab_local, std::int64_t first, Array logits);

// Overwrites logits [rows, vocab_local] with e, and writes m_local, s_local, t_local [rows]. t_local is the
// target's logit if the target is in [vocab_offset, vocab_offset + vocab_local), otherwise 0. vocab_local >
// 0. Logits are first multiplied by `scale`, which is above 0.
void softmax_stats(std::int64_t rows, std::int64_t vocab_local, std::int64_t vocab_offset,
                   const std::int32_t* targets, Array logits, float* m_local, float* s_local, float* t_local,
                   float scale = 1);

// All arrays are [rows]; s_adj may be s_local.
void rescale_sums(std::int64_t rows, const float* s_local, const float* m_local, const float* m,
                  float* s_adj);

// Sets *loss = scale * sum over the counted rows, each times its weight, in double and in row order. Returns
// the number of counted rows. `weights` [rows]; null: all are 1.
std::int64_t cross_entropy_loss(std::int64_t rows, const std::int32_t* targets, const float* m,
                                const float* s, const float* t, double scale, float* loss,
                                const float* weights = nullptr);

// Writes the log probability of each row's target; 0 for ignored rows.
void log_probs(std::int64_t rows, const std::int32_t* targets, const float* m, const float* s, const float* t,
               float* logp);

// Overwrites e [rows, vocab_local], as left by softmax_stats, with the gradient of the logits. m and s are of
// the whole vocabulary. `weights` [rows]; null: all are 1.
void cross_entropy_backward(std::int64_t rows, std::int64_t vocab_local, std::int64_t vocab_offset,
                            const std::int32_t* targets, const float* m_local, const float* m, const float* s,
                            float scale, Array e, const float* weights = nullptr);

}  // namespace hyperrun::kernels
