// The blocking of attention, and the layout of its scratch. It is the same for every vector target.
//
// Queries are taken in blocks of kBlock rows; a block's scores against all keys that it can see stay in L2.
// Inside a block, strips of kStrip rows follow the causal triangle: a strip computes no keys beyond its last
// row (rounded up to a vector). Keys are stored transposed in panels of kPanel keys, [head_dim][kPanel] each,
// so that a panel stays in L1 while the block's strips pass over it. With a window, a strip begins at the
// first key of its first row, and panels before that are left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/device/kernels/attention.h"

namespace hyperrun::kernels {

inline constexpr std::int64_t kStrip = 6;
inline constexpr std::int64_t kBlock = 8 * kStrip;
inline constexpr std::int64_t kPanel = 64;

// The sizes of a call with the defaults filled in.
struct AttentionPlan {
  explicit AttentionPlan(const AttentionShape& s)
      : batch(s.batch),
        seq(s.seq),
        keys(s.keys > 0 ? s.keys : s.seq),
        heads(s.heads),
        kv_heads(s.kv_heads),
        group(s.kv_heads > 0 ? s.heads / s.kv_heads : 0),
        head_dim(s.head_dim),
        value_dim(s.value_dim > 0 ? s.value_dim : s.head_dim),
        q_stride(s.q_stride > 0 ? s.q_stride : s.heads * s.head_dim),
        kv_stride(s.kv_stride > 0 ? s.kv_stride : s.kv_heads * s.head_dim),
        v_stride(s.kv_stride > 0 ? s.kv_stride : s.kv_heads * value_dim),
        o_stride(s.o_stride > 0 ? s.o_stride : s.heads * value_dim),
        q_rows(s.q_rows > 0 ? s.q_rows : s.seq),
        kv_rows(s.kv_rows > 0 ? s.kv_rows : keys),
        panels((keys + kPanel - 1) / kPanel),
        // The stride must not be a multiple of 4 KiB, or the rows of a block would share a few cache sets. It
        // has room for the zeros behind the last key that a row sees.
        score_stride(panels * kPanel + 16),
        scale(s.scale > 0 ? s.scale : 1.0F / std::sqrt(static_cast<float>(s.head_dim))),
        ends(s.seen),
        begins(s.from),
        window(s.window),
        causal(s.causal),
        onward(s.onward),
        rounded(s.rounded) {}

  void check() const {
    HR_CHECK(kv_heads > 0 && heads % kv_heads == 0, "kv_heads divides heads");
    HR_CHECK(!causal || keys == seq, "causal attention sees as many keys as queries");
    HR_CHECK((ends == nullptr && begins == nullptr) || !causal, "tables are in place of a mask");
    HR_CHECK(window == 0 || causal, "a window is of the keys up to the query's own");
  }

  // Query row i sees the keys from first(i) to before seen(i). Both rise with i.
  std::int64_t seen(std::int64_t i) const {
    if (ends != nullptr) return ends[i];
    return causal ? i + 1 : keys;
  }
  std::int64_t first(std::int64_t i) const {
    if (begins != nullptr) return begins[i];
    return window > 0 ? std::max<std::int64_t>(0, i + 1 - window) : 0;
  }
  // The end of the keys that rows before `end` see.
  std::int64_t seen_before(std::int64_t end) const { return seen(std::min(end, seq) - 1); }

  std::int64_t batch, seq, keys, heads, kv_heads, group, head_dim, value_dim;
  std::int64_t q_stride, kv_stride, v_stride, o_stride;
  std::int64_t q_rows, kv_rows, panels, score_stride;
  float scale;
  const std::int32_t *ends, *begins;
  std::int64_t window;
  bool causal, onward, rounded;
};

// Cuts 64-byte aligned pieces of floats from the scratch, one after the other. With a null scratch it only
// counts.
class ScratchCursor {
 public:
  explicit ScratchCursor(void* base) : base_(reinterpret_cast<std::uintptr_t>(base)) {}

  float* take(std::int64_t floats) {
    used_ = (base_ + used_ + 63) / 64 * 64 - base_;
    auto* piece = reinterpret_cast<float*>(base_ + used_);
    used_ += static_cast<std::uintptr_t>(floats) * sizeof(float);
    return piece;
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(used_) + 64; }

 private:
  std::uintptr_t base_, used_ = 0;
};

struct AttentionScratch {
  AttentionScratch(const AttentionPlan& p, ScratchCursor& cursor)
      : keys(cursor.take(p.panels * kPanel * p.head_dim)),
        values(cursor.take(p.keys * p.value_dim)),
        queries(cursor.take(kBlock * p.head_dim)),
        scores(cursor.take(kBlock * p.score_stride)),
        out(p.rounded ? cursor.take(kStrip * p.value_dim) : nullptr) {}

  float* keys;     // transposed panels of k
  float* values;   // [keys, value_dim] of v
  float* queries;  // [block, head_dim]
  float* scores;   // [block, score_stride], then the probabilities
  float* out;      // [strip, value_dim] of o, if it is rounded
};

struct AttentionBackwardScratch {
  AttentionBackwardScratch(const AttentionPlan& p, ScratchCursor& cursor)
      : keys(cursor.take(p.panels * kPanel * p.head_dim)),
        values(cursor.take(p.panels * kPanel * p.value_dim)),
        key_rows(cursor.take(p.keys * p.head_dim)),
        queries(cursor.take(kBlock * p.head_dim)),
        d_out(cursor.take(kBlock * p.value_dim)),
        scores(cursor.take(kBlock * p.score_stride)),
        d_scores(cursor.take(kBlock * p.score_stride)),
        dq(p.rounded ? cursor.take(kStrip * p.head_dim) : nullptr),
        dk(p.rounded ? cursor.take(p.keys * p.head_dim) : nullptr),
        dv(p.rounded ? cursor.take(p.keys * p.value_dim) : nullptr) {}

  float* keys;          // transposed panels of k
  float* values;        // transposed panels of v
  float* key_rows;      // [keys, head_dim] of k
  float* queries;       // [block, head_dim]
  float* d_out;         // [block, value_dim]
  float* scores;        // [block, score_stride], then the probabilities
  float* d_scores;      // [block, score_stride]: gradient of the probabilities, then of the scaled scores
  float *dq, *dk, *dv;  // [strip, head_dim], [keys, head_dim], [keys, value_dim], if they are rounded
};

// The arguments of attention_backward.
struct BackwardTensors {
  ConstArray q, k, v, o;
  const float* lse;
  ConstArray d_o;
  Array dq, dk, dv;
};

}  // namespace hyperrun::kernels
