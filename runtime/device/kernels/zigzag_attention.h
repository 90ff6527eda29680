// Attention along a ring of devices, each of which holds two chunks of the sequence, an early one and its
// counterpart from the end (runtime/ir/zigzag.h). Of the keys of another part that comes before the own one
// in the ring, all own rows see the early half; the late half of the own rows sees all keys of a part behind
// it. Without a mask all own rows see all keys of every part, which may be in any order then.
#pragma once

#include "runtime/device/kernels/attention.h"

namespace hyperrun::kernels {

enum class KeysOf : bool { kPartBefore, kPartBehind };

// `part`: of the own rows and as many keys, contiguous; `causal` is that of the whole sequence. o and lse are
// merged with what they hold.
void zigzag_attention(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k, ConstArray v,
                      Array o, float* lse, void* scratch);

// o and lse are the final ones. dq is added to; dk and dv are written, zeros where no row sees the key.
void zigzag_attention_backward(const AttentionShape& part, KeysOf keys, ConstArray q, ConstArray k,
                               ConstArray v, ConstArray o, const float* lse, ConstArray d_o, Array dq,
                               Array dk, Array dv, void* scratch);

}  // namespace hyperrun::kernels
