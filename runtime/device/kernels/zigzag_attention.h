// Attention along a ring of devices. Each device holds two chunks of the sequence: an early one and its
// counterpart from the end (runtime/ir/zigzag.h). If the keys of another part come before the own one in the
// ring, all own rows see their early half. If they come behind it, the late half of the own rows sees all of
// them. Without a mask all own rows see all keys of every part, in any order.
#pragma once

#include <cstdint>

#include "runtime/device/kernels/attention.h"

namespace hyperrun::kernels {

enum class KeysOf : bool { kPartBefore, kPartBehind };

// `part` is the shape of the own rows and as many keys, contiguous; `causal` is that of the whole sequence.
// The results are merged into o and lse.
void zigzag_attention(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k, ConstArray v,
                      Array o, float* lse, void* scratch);

// o and lse are the final ones. dq is added to; dk and dv are written, with zeros for keys that no row sees.
void zigzag_attention_backward(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k,
                               ConstArray v, ConstArray o, const float* lse, ConstArray d_o, Array dq,
                               Array dk, Array dv, void* scratch);

// The positions of a part in zigzag order: two stretches, each half as long as the part, in rising order.
struct Stretches {
  std::int64_t first = 0, second = 0;  // the first position of each
};

// Attention with a window (part.window): queries of one part against keys of another, or of the same. A step
// that is `onward` merges its results into o and lse, or adds to dq. Parts whose positions are out of each
// other's windows cost nothing. The scratch is attention's, and before it window_tables_bytes(part.seq).
std::int64_t window_tables_bytes(std::int64_t seq);
void window_attention(const AttentionShape& part, Stretches queries, Stretches keys, bool onward,
                      ConstArray q, ConstArray k, ConstArray v, Array o, float* lse, void* scratch);
void window_attention_backward(const AttentionShape& part, Stretches queries, Stretches keys, bool onward,
                               ConstArray q, ConstArray k, ConstArray v, ConstArray o, const float* lse,
                               ConstArray d_o, Array dq, Array dk, Array dv, void* scratch);

}  // namespace hyperrun::kernels
