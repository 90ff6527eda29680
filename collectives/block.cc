#include "collectives/block.h"

#include <algorithm>
#include <cstring>

namespace hyperrun {
namespace {

// Merges loops whose steps adjoin into one run.
Block merged(Block b) {
  for (int i = 2; i >= 0; --i) {
    auto& count = b.count[static_cast<std::size_t>(i)];
    if (count != 1 && b.stride[static_cast<std::size_t>(i)] != b.run) break;
    b.run *= count;
    count = 1;
  }
  return b;
}

// The loop over the positions of one member that take part.
struct Runs {
  std::int64_t count = 1, pitch = 0, size = 0;

  Runs(const CollectiveArgs& args, std::int64_t positions)
      : count(args.pitch == 0 ? 1 : args.runs),
        pitch(args.pitch == 0 ? positions : args.pitch),
        size(positions / count) {}
};

// Blocks along x of a tensor [a, x, b, y / p, c], and along y of a tensor [a, x / p, b, y, c].
Blocks x_blocks(const CollectiveArgs& args, int p, const std::byte* base) {
  const AllToAllShape& s = args.all_to_all;
  const Runs runs(args, s.x / p);
  const std::int64_t position = s.b * (s.y / p) * s.c * size_of(args.dtype);
  const std::int64_t part = runs.count * runs.pitch * position;
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, s.a, runs.count},
                  .stride = {0, p * part, runs.pitch * position},
                  .run = runs.size * position}),
          part};
}

Blocks y_blocks(const CollectiveArgs& args, int p, const std::byte* base) {
  const AllToAllShape& s = args.all_to_all;
  const Runs runs(args, s.x / p);
  const std::int64_t part = s.y / p * s.c * size_of(args.dtype), row = p * part;
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, s.a * runs.count, runs.size * s.b},
                  .stride = {0, runs.pitch * s.b * row, row},
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
  // Most small messages copy one run to one run, and a cursor's divisions would take longer than the copy.
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

Blocks parts_of_all(const CollectiveArgs& args, int p, const std::byte* base) {
  const Runs runs(args, args.inner);
  const std::int64_t element = size_of(args.dtype), part = runs.count * runs.pitch * element;
  return {merged({.base = const_cast<std::byte*>(base),
                  .count = {1, args.outer, runs.count},
                  .stride = {0, p * part, runs.pitch * element},
                  .run = runs.size * element}),
          part};
}

Block own_part(const CollectiveArgs& args, const std::byte* base) {
  return parts_of_all(args, 1, base).of(0);
}

// The sender splits what the receiver's layout splits, and the receiver places it by the sender's split.
Blocks all_to_all_sources(const CollectiveArgs& args, int p, const std::byte* in) {
  return args.all_to_all.gather_x ? y_blocks(args, p, in) : x_blocks(args, p, in);
}

Blocks all_to_all_targets(const CollectiveArgs& args, int p, const std::byte* out) {
  return args.all_to_all.gather_x ? x_blocks(args, p, out) : y_blocks(args, p, out);
}

void pack_input(const CollectiveArgs& args, int p, std::byte* to) {
  const std::int64_t bytes = in_elements(args, p) * size_of(args.dtype);
  if (args.pitch == 0) return void(std::memcpy(to, args.in, static_cast<std::size_t>(bytes)));
  // The blocks lie in `out` as an all-gather by one rank would place them.
  CollectiveArgs all = args;
  if (args.kind == Collective::kReduceScatter) all.outer *= p;
  if (args.kind == Collective::kAllToAll) {
    const AllToAllShape& s = args.all_to_all;
    all.outer = s.gather_x ? s.a : s.a * p;
    const std::int64_t position = s.b * s.c * (s.gather_x ? s.y : s.y / p);
    all.inner = s.x / p * position;
    all.pitch *= position;
  }
  copy(contiguous_block(to, bytes), own_part(all, args.in));
}

CollectiveArgs with_packed_input(const CollectiveArgs& args) {
  CollectiveArgs packed = args;
  packed.runs = 1, packed.pitch = 0;
  return packed;
}

}  // namespace hyperrun
