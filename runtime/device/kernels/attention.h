// Scaled dot-product attention with grouped queries, in blocks of query rows. The probabilities of a block
// live in scratch only; the backward pass computes them again from lse.
//
//   q [batch, seq, heads, head_dim]    k [batch, seq, kv_heads, head_dim]    lse [batch, heads, seq]
//   o [batch, seq, heads, value_dim]   v [batch, seq, kv_heads, value_dim]
//   o = softmax(scale * q k^T) v,  lse = log sum exp of the scaled (and masked) scores
//
// Query head h uses kv head h / (heads / kv_heads). Rows of one sequence lie q_stride, kv_stride and o_stride
// elements apart, so that a fused [rows, q | k | v] buffer is read in place.
//
// Keys may come in blocks, one call a block (`onward`), in any order. Then o and lse are merged with the
// results of earlier calls (Liu et al. 2023), and the backward pass, which takes the final o and lse, adds up
// dq. Queries and keys of a call may be a part of the sequences in the buffers: pointers are to the part's
// first row, q_rows and kv_rows are the distances of batch entries.
//
// Arrays of a call have one format. Only o of the forward pass and dq, which blocks of keys add up, may be
// float32 beside others in bfloat16, and must be when `onward`. Scores, sums and lse are float32.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

struct AttentionShape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = true;          // query i sees keys 0..i only; needs as many keys as queries
  float scale = 0;             // 0: 1 / sqrt(head_dim)
  std::int64_t q_stride = 0;   // stride of q and dq; 0: heads * head_dim
  std::int64_t kv_stride = 0;  // stride of k, v, dk and dv; 0: kv_heads * head_dim, kv_heads * value_dim
  std::int64_t o_stride = 0;   // stride of o and do; 0: heads * value_dim
  std::int64_t keys = 0;       // 0: seq
  std::int64_t q_rows = 0;     // rows of a batch entry in q, o, do, dq and (of a head there) lse; 0: seq
  std::int64_t kv_rows = 0;    // rows of a batch entry in k, v, dk and dv; 0: keys
  // Query i sees the keys from `from`[i] to before `seen`[i]. Both rise with i. Null: from 0; all, or as
  // `causal` says. Without `onward` each query sees a key.
  const std::int32_t* seen = nullptr;
  const std::int32_t* from = nullptr;
  bool onward = false;         // o and lse, or dq, hold results for other keys
  bool rounded = false;        // a result is not float32, so it is summed up in scratch
  std::int64_t value_dim = 0;  // 0: head_dim
  std::int64_t window = 0;     // causal: a query sees the last `window` of its keys only; 0: all
};

// Bytes of scratch, with any alignment of float. They depend on keys, head_dim and value_dim, and grow with
// them.
std::int64_t attention_scratch_bytes(const AttentionShape& shape);
std::int64_t attention_backward_scratch_bytes(const AttentionShape& shape);

void attention(const AttentionShape& shape, ConstArray q, ConstArray k, ConstArray v, Array o, float* lse,
               void* scratch);

// Overwrites dk, dv and, unless `onward`, dq; none may overlap an input.
void attention_backward(const AttentionShape& shape, ConstArray q, ConstArray k, ConstArray v, ConstArray o,
                        const float* lse, ConstArray d_o, Array dq, Array dk, Array dv, void* scratch);

}  // namespace hyperrun::kernels
