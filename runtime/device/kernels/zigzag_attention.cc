#include "runtime/device/kernels/zigzag_attention.h"

#include <algorithm>
#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/device/kernels/elementwise.h"

namespace hyperrun::kernels {
namespace {

// The queries and keys that meet, and their first rows.
struct Meeting {
  Meeting(const AttentionShape& part, KeysOf whose) : shape(part) {
    HR_CHECK(part.q_stride == 0 && part.kv_stride == 0 && part.o_stride == 0, "contiguous");
    shape.causal = false;
    shape.onward = true;
    shape.q_rows = shape.kv_rows = shape.keys = part.seq;
    if (!part.causal) return;
    const std::int64_t half = part.seq / 2;
    HR_CHECK(part.seq == 2 * half, "two chunks");
    if (whose == KeysOf::kPartBefore)
      shape.keys = half;
    else
      shape.seq = first_row = half;
    q_at = first_row * part.heads * part.head_dim;
    o_at = first_row * part.heads * (part.value_dim > 0 ? part.value_dim : part.head_dim);
  }

  AttentionShape shape;
  std::int64_t first_row = 0, q_at = 0, o_at = 0;
};

// Clears the rows of [batch, kv_rows, kv_heads, width] behind the seen keys.
void clear_unseen(const AttentionShape& s, std::int64_t width, Array x) {
  const std::int64_t row = s.kv_heads * width;
  for (std::int64_t b = 0; b < s.batch; ++b)
    clear((s.kv_rows - s.keys) * row, x + (b * s.kv_rows + s.keys) * row);
}

// The number of keys of a part, in rising order, at positions below `end`.
std::int64_t keys_below(std::int64_t end, Stretches keys, std::int64_t half) {
  return std::clamp<std::int64_t>(end - keys.first, 0, half) +
         std::clamp<std::int64_t>(end - keys.second, 0, half);
}

// The shape of a call with a window, with tables of what each query sees. They lie at the scratch's begin.
struct WindowCall {
  WindowCall(const AttentionShape& part, Stretches queries, Stretches keys, bool onward, void* scratch)
      : shape(part), rest(static_cast<std::byte*>(scratch) + window_tables_bytes(part.seq)) {
    HR_CHECK(part.causal && part.window > 0 && part.seq % 2 == 0, "a window of two stretches");
    const std::int64_t half = part.seq / 2;
    auto* const seen = static_cast<std::int32_t*>(scratch);
    std::int32_t* const from = seen + part.seq;
    for (std::int64_t i = 0; i < part.seq; ++i) {
      const std::int64_t position = i < half ? queries.first + i : queries.second + i - half;
      seen[i] = static_cast<std::int32_t>(keys_below(position + 1, keys, half));
      from[i] = static_cast<std::int32_t>(keys_below(position + 1 - part.window, keys, half));
      any = any || from[i] < seen[i];
    }
    shape.causal = false;
    shape.window = 0;
    shape.onward = onward;
    shape.seen = seen, shape.from = from;
  }

  AttentionShape shape;
  void* rest;
  bool any = false;  // a query sees a key
};

}  // namespace

std::int64_t window_tables_bytes(std::int64_t seq) { return (8 * seq + 63) / 64 * 64; }

void window_attention(const AttentionShape& part, Stretches queries, Stretches keys, bool onward,
                      ConstArray q, ConstArray k, ConstArray v, Array o, float* lse, void* scratch) {
  const WindowCall call(part, queries, keys, onward, scratch);
  if (call.any) attention(call.shape, q, k, v, o, lse, call.rest);
}

void window_attention_backward(const AttentionShape& part, Stretches queries, Stretches keys, bool onward,
                               ConstArray q, ConstArray k, ConstArray v, ConstArray o, const float* lse,
                               ConstArray d_o, Array dq, Array dk, Array dv, void* scratch) {
  const WindowCall call(part, queries, keys, onward, scratch);
  if (call.any) return attention_backward(call.shape, q, k, v, o, lse, d_o, dq, dk, dv, call.rest);
  const std::int64_t rows = part.batch * part.seq * part.kv_heads;
  clear(rows * part.head_dim, dk);
  clear(rows * (part.value_dim > 0 ? part.value_dim : part.head_dim), dv);
}

void zigzag_attention(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k, ConstArray v,
                      Array o, float* lse, void* scratch) {
  const Meeting m(part, keys);
  attention(m.shape, q + m.q_at, k, v, o + m.o_at, lse + m.first_row, scratch);
}

void zigzag_attention_backward(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k,
                               ConstArray v, ConstArray o, const float* lse, ConstArray d_o, Array dq,
                               Array dk, Array dv, void* scratch) {
  const Meeting m(part, keys);
  clear_unseen(m.shape, part.head_dim, dk);
  clear_unseen(m.shape, part.value_dim > 0 ? part.value_dim : part.head_dim, dv);
  attention_backward(m.shape, q + m.q_at, k, v, o + m.o_at, lse + m.first_row, d_o + m.o_at, dq + m.q_at, dk,
                     dv, scratch);
}

}  // namespace hyperrun::kernels
