#include "runtime/device/kernels/cached_attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/device/kernels/attention.h"
#include "runtime/device/kernels/elementwise.h"
#include "runtime/device/kernels/paged_rows.h"
#include "runtime/device/kernels/paged_rows_plan.h"

namespace hyperrun::kernels {
namespace {

constexpr std::int64_t kTile = 256;   // cached positions taken at once
constexpr std::int64_t kFewRows = 4;  // rows that are too few to pay for packing the keys

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Pass {
  ConstArray q, k, v;
  Array o;
  float* lse = nullptr;  // lse of a part
};

class CachedAttention {
 public:
  CachedAttention(const CachedShape& shape, void* scratch)
      : s_(shape), number_(shape.rounded ? 2 : 4), next_(static_cast<std::byte*>(scratch)) {
    if (few_rows()) {
      inner_ = take(paged_rows_scratch_bytes(s_));
      return;
    }
    if (s_.parts > 1 || s_.window > 0) {
      seen_ = reinterpret_cast<std::int32_t*>(take(s_.seq * 4));
      from_ = reinterpret_cast<std::int32_t*>(take(s_.seq * 4));
    }
    tile_keys_ = take(kTile * key_row() * number_);
    tile_values_ = take(kTile * value_row() * number_);
    lse_ = reinterpret_cast<float*>(take(s_.heads * s_.seq * 4));
    if (s_.rounded) sums_ = reinterpret_cast<float*>(take(s_.seq * s_.heads * s_.value_dim * 4));
    inner_ = take(
        std::max(attention_scratch_bytes(of_pass(s_.seq)), attention_scratch_bytes(of_tile(s_.seq, kTile))));
  }

  std::int64_t bytes() const { return bytes_; }

  void run_part(const CachedSequence& sequence, const Pass& pass, Array keys, Array values) const {
    const std::int64_t wide = s_.heads * s_.value_dim;
    clear(s_.seq * wide, pass.o);
    std::fill_n(pass.lse, s_.heads * s_.seq, -std::numeric_limits<float>::infinity());
    put(sequence, pass, keys, values);
    if (few_rows())
      paged_rows_part(s_, sequence, pass.q, keys, values, pass.o.as<float>(), pass.lse, inner_);
    else
      attend_to_held(sequence, pass, keys, values);
  }

  void run(const CachedSequence& sequence, const Pass& pass, Array keys, Array values) const {
    const std::int64_t wide = s_.heads * s_.value_dim;
    if (few_rows()) {
      put(sequence, pass, keys, values);
      paged_rows(s_, sequence, pass.q, keys, values, pass.o, inner_);
    } else if (sequence.count > 0) {
      attend(sequence, pass, keys, values);
      put(sequence, pass, keys, values);
    }
    const Array rest = pass.o + sequence.count * wide;
    clear((s_.seq - sequence.count) * wide, rest);
  }

 private:
  bool few_rows() const { return s_.seq <= kFewRows; }
  std::int64_t key_row() const { return s_.kv_heads * s_.head_dim; }
  std::int64_t value_row() const { return s_.kv_heads * s_.value_dim; }

  std::byte* take(std::int64_t bytes) {
    std::byte* at = next_ == nullptr ? nullptr : next_ + bytes_;
    bytes_ += aligned(bytes);
    return at;
  }

  AttentionShape of_pass(std::int64_t count) const {
    return {.batch = 1,
            .seq = count,
            .heads = s_.heads,
            .kv_heads = s_.kv_heads,
            .head_dim = s_.head_dim,
            .scale = s_.scale,
            .value_dim = s_.value_dim,
            .window = s_.window};
  }
  AttentionShape of_tile(std::int64_t count, std::int64_t keys) const {
    AttentionShape shape = of_pass(count);
    shape.causal = false;
    shape.window = 0;
    shape.keys = keys;
    shape.onward = true;
    return shape;
  }

  void attend(const CachedSequence& sequence, const Pass& own, Array keys, Array values) const {
    const std::int64_t start = sequence.start, count = sequence.count;
    const Array o = s_.rounded ? Array(sums_) : own.o;
    attention(of_pass(count), own.q, own.k, own.v, o, lse_, inner_);
    for (std::int64_t from = first_seen(start); from < start; from += kTile) {
      const std::int64_t n = std::min(kTile, start - from);
      fetch(sequence, from, n, keys, values);
      AttentionShape shape = of_tile(count, n);
      if (s_.window > 0) {
        for (std::int64_t i = 0; i < count; ++i) seen_[i] = static_cast<std::int32_t>(n);
        set_begins(count, n, [&](std::int64_t i) { return first_seen(start + i) - from; });
        shape.seen = seen_, shape.from = from_;
      }
      attention(shape, own.q, tile(tile_keys_), tile(tile_values_), o, lse_, inner_);
    }
    if (s_.rounded) convert(count * s_.heads * s_.value_dim, ConstArray(sums_), own.o);
  }

  // Attends to pages, which hold the new positions too: tile by tile, each query as far as it sees.
  void attend_to_held(const CachedSequence& sequence, const Pass& own, Array keys, Array values) const {
    const std::int64_t start = sequence.start, count = sequence.count;
    const std::int64_t all = held_.before(start + count);
    for (std::int64_t from = held_.before(first_seen(start)); from < all; from += kTile) {
      const std::int64_t n = std::min(kTile, all - from);
      fetch(sequence, from, n, keys, values);
      AttentionShape shape = of_tile(count, n);
      shape.q_rows = s_.seq;  // distance of batch entries in lse
      for (std::int64_t i = 0; i < count; ++i)
        seen_[i] =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(held_.before(start + i + 1) - from, 0, n));
      shape.seen = seen_;
      if (s_.window > 0) {
        set_begins(count, n, [&](std::int64_t i) { return held_.before(first_seen(start + i)) - from; });
        shape.from = from_;
      }
      attention(shape, own.q, tile(tile_keys_), tile(tile_values_), own.o, own.lse, inner_);
    }
  }

  // The first position that the query at `position` sees.
  std::int64_t first_seen(std::int64_t position) const {
    return s_.window > 0 ? std::max<std::int64_t>(0, position + 1 - s_.window) : 0;
  }
  // Fills from_ with the first key of a tile of n that each query sees, at most the end of those that it
  // sees.
  void set_begins(std::int64_t count, std::int64_t n, auto first) const {
    for (std::int64_t i = 0; i < count; ++i)
      from_[i] = std::min(seen_[i], static_cast<std::int32_t>(std::clamp<std::int64_t>(first(i), 0, n)));
  }

  void fetch(const CachedSequence& sequence, std::int64_t from, std::int64_t n, Array keys,
             Array values) const {
    each_page_run(sequence.pages, s_.page, from, n, [&](std::int64_t i, std::int64_t at, std::int64_t run) {
      copy_rows(run * key_row(), keys + at * key_row(), tile(tile_keys_) + i * key_row());
      copy_rows(run * value_row(), values + at * value_row(), tile(tile_values_) + i * value_row());
    });
  }

  // Writes this device's part of the new keys and values to the pages.
  void put(const CachedSequence& sequence, const Pass& own, Array keys, Array values) const {
    const std::int64_t first = held_.before(sequence.start);
    const auto copy = [&](std::int64_t i, std::int64_t at, std::int64_t run) {
      const std::int64_t from = held_.position(first + i) - sequence.start;
      copy_rows(run * key_row(), own.k + from * key_row(), keys + at * key_row());
      copy_rows(run * value_row(), own.v + from * value_row(), values + at * value_row());
    };
    each_page_run(sequence.pages, s_.page, first, held_.before(sequence.start + sequence.count) - first,
                  copy);
  }

  void copy_rows(std::int64_t n, ConstArray from, Array to) const {
    std::memcpy(to.data(), from.data(), static_cast<std::size_t>(n * number_));
  }
  Array tile(std::byte* at) const { return {at, s_.rounded ? DType::kBF16 : DType::kF32}; }

  const CachedShape& s_;
  Held held_{s_.page, s_.parts, s_.part};
  std::int64_t number_;  // bytes of one number
  std::byte* next_;
  std::int64_t bytes_ = 0;
  std::byte *tile_keys_ = nullptr, *tile_values_ = nullptr, *inner_ = nullptr;
  float *lse_ = nullptr, *sums_ = nullptr;
  std::int32_t *seen_ = nullptr, *from_ = nullptr;
};

}  // namespace

std::int64_t cached_attention_scratch_bytes(const CachedShape& shape) {
  return CachedAttention(shape, nullptr).bytes();
}

void cached_attention(const CachedShape& shape, const CachedSequence& sequence, ConstArray q, ConstArray k,
                      ConstArray v, Array keys, Array values, Array o, void* scratch) {
  HR_CHECK(shape.parts == 1, "a part has no result of its own");
  CachedAttention(shape, scratch).run(sequence, {q, k, v, o}, keys, values);
}

void cached_attention_part(const CachedShape& shape, const CachedSequence& sequence, ConstArray q,
                           ConstArray k, ConstArray v, Array keys, Array values, float* o, float* lse,
                           void* scratch) {
  CachedAttention(shape, scratch).run_part(sequence, {q, k, v, Array(o), lse}, keys, values);
}

}  // namespace hyperrun::kernels
