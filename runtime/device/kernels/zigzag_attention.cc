#include "runtime/device/kernels/zigzag_attention.h"

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

}  // namespace

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
