#include "collectives/block.h"

#include <algorithm>
#include <cstring>

namespace hyperrun {
namespace {

// Loops whose steps adjoin are one run.
Block merged(Block b) {
  for (int i = 2; i >= 0; --i) {
    auto& count = b.count[static_cast<std::size_t>(i)];
    if (count != 1 && b.stride[static_cast<std::size_t>(i)] != b.run) break;
    b.run *= count;
    count = 1;
  }
  return b;
}

// The parts of x of a tensor [a, x, b, y / p, c], and of y of a tensor [a, x / p, b, y, c].
Blocks x_blocks(const AllToAllShape& s, std::int64_t element, int p, const std::byte* base) {
  const std::int64_t row = s.y / p * s.c * element, part = s.x / p * s.b * row;
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, s.a, 1},
                  .stride = {0, s.x * s.b * row, 0},
                  .run = part}),
          part};
}

Blocks y_blocks(const AllToAllShape& s, std::int64_t element, int p, const std::byte* base) {
  const std::int64_t part = s.y / p * s.c * element;
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, 1, s.a * (s.x / p) * s.b},
                  .stride = {0, 0, s.y * s.c * element},
                  .run = part}),
          part};
}

template <class Fn>
void for_each_extent(const Block& block, std::int64_t offset, std::int64_t bytes, Fn fn) {
  BlockCursor cursor(block, offset);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t n = std::min(cursor.left(), bytes - done);
    fn(cursor.data(), done, static_cast<std::size_t>(n));
    cursor.advance(n);
    done += n;
  }
}

}  // namespace

BlockCursor::BlockCursor(const Block& block, std::int64_t offset) : block_(&block) {
  const std::int64_t index = block.run == 0 ? 0 : offset / block.run;
  const std::int64_t within = block.run == 0 ? 0 : offset % block.run;
  const std::int64_t rest = index / block.count[2];
  at_ = {rest / block.count[1], rest % block.count[1], index % block.count[2]};
  seek_run();
  data_ += within;
  left_ -= within;
}

void BlockCursor::seek_run() {
  data_ = block_->base + at_[0] * block_->stride[0] + at_[1] * block_->stride[1] + at_[2] * block_->stride[2];
  left_ = block_->run;
}

void BlockCursor::next_run() {
  if (++at_[2] == block_->count[2]) {
    at_[2] = 0;
    if (++at_[1] == block_->count[1]) {
      at_[1] = 0;
      ++at_[0];
    }
  }
  seek_run();
}

void copy(const Block& to, const Block& from) {
  const std::int64_t bytes = from.bytes();
  // Small messages are mostly one run to one run, and a cursor's divisions would take longer than they.
  if (from.run == bytes && to.run == bytes) {
    if (bytes > 0 && from.base != to.base) std::memcpy(to.base, from.base, static_cast<std::size_t>(bytes));
    return;
  }
  BlockCursor source(from, 0), target(to, 0);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t n = std::min(source.left(), target.left());
    if (source.data() != target.data())
      std::memcpy(target.data(), source.data(), static_cast<std::size_t>(n));
    source.advance(n);
    target.advance(n);
    done += n;
  }
}

void pack(std::byte* to, const Block& from, std::int64_t offset, std::int64_t bytes) {
  for_each_extent(from, offset, bytes,
                  [&](std::byte* p, std::int64_t at, std::size_t n) { std::memcpy(to + at, p, n); });
}

void unpack(const Block& to, std::int64_t offset, const std::byte* from, std::int64_t bytes) {
  for_each_extent(to, offset, bytes,
                  [&](std::byte* p, std::int64_t at, std::size_t n) { std::memcpy(p, from + at, n); });
}

Block contiguous_block(const std::byte* base, std::int64_t bytes) {
  return {.base = const_cast<std::byte*>(base), .run = bytes};
}

Block middle_block(const std::byte* base, std::int64_t outer, int p, int i, std::int64_t inner_bytes) {
  return middle_blocks(base, outer, p, inner_bytes).of(i);
}

Blocks middle_blocks(const std::byte* base, std::int64_t outer, int p, std::int64_t inner_bytes) {
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, 1, outer},
                  .stride = {0, 0, p * inner_bytes},
                  .run = inner_bytes}),
          inner_bytes};
}

// The sender splits what the receiver's layout splits, and the receiver places it by the sender's split.
Blocks all_to_all_sources(const AllToAllShape& s, std::int64_t element, int p, const std::byte* in) {
  return s.gather_x ? y_blocks(s, element, p, in) : x_blocks(s, element, p, in);
}

Blocks all_to_all_targets(const AllToAllShape& s, std::int64_t element, int p, std::byte* out) {
  return s.gather_x ? x_blocks(s, element, p, out) : y_blocks(s, element, p, out);
}

}  // namespace hyperrun
