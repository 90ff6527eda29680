// A Block is a strided piece of a tensor: up to three loops around a contiguous run of bytes. It describes
// the data that one rank sends to another, or takes from it, without packing.
//
//   count {1, 1, 2}, stride {., ., 12}, run 4:   |####........####|
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/types.h"

namespace hyperrun {

struct Block {
  std::byte* base = nullptr;
  std::array<std::int64_t, 3> count{1, 1, 1};   // outermost first
  std::array<std::int64_t, 3> stride{0, 0, 0};  // bytes
  std::int64_t run = 0;                         // contiguous bytes

  std::int64_t bytes() const { return count[0] * count[1] * count[2] * run; }
  bool contiguous() const { return count[0] == 1 && count[1] == 1 && count[2] == 1; }
};

// Walks the contiguous extents of a block in logical order.
class BlockCursor {
 public:
  BlockCursor(const Block& block, std::int64_t offset);

  std::byte* data() const { return data_; }
  std::int64_t left() const { return left_; }  // contiguous bytes from data()
  void advance(std::int64_t bytes) {           // at most left()
    data_ += bytes;
    left_ -= bytes;
    if (left_ == 0) next_run();
  }

 private:
  void seek_run();
  void next_run();

  const Block* block_;
  std::array<std::int64_t, 3> at_{};
  std::byte* data_ = nullptr;
  std::int64_t left_ = 0;
};

// Copies a whole block to another of equal bytes; the loops of the two may differ.
void copy(const Block& to, const Block& from);
// Copies the bytes [offset, offset + bytes) of a block to (pack) or from (unpack) contiguous memory.
void pack(std::byte* to, const Block& from, std::int64_t offset, std::int64_t bytes);
void unpack(const Block& to, std::int64_t offset, const std::byte* from, std::int64_t bytes);

Block contiguous_block(const std::byte* base, std::int64_t bytes);

// One block for each peer; the blocks differ only in their places.
struct Blocks {
  Block first;
  std::int64_t step = 0;  // bytes from one peer's to the next one's

  Block of(int peer) const { return of(peer, first.base); }
  // The peer's block in another buffer of the same layout.
  Block of(int peer, const std::byte* base) const {
    Block block = first;
    block.base = const_cast<std::byte*>(base) + peer * step;
    return block;
  }
};

// For kReduceScatter and kAllGather: the members' parts of a tensor [outer, p, inner].
Blocks parts_of_all(const CollectiveArgs& args, int p, const std::byte* base);
Block own_part(const CollectiveArgs& args, const std::byte* base);
// For kAllToAll: the blocks of `in` that go to each peer, and the blocks of `out` that come from each.
Blocks all_to_all_sources(const CollectiveArgs& args, int p, const std::byte* in);
Blocks all_to_all_targets(const CollectiveArgs& args, int p, const std::byte* out);
// Copies the elements of the input that take part (see `runs` in types.h) to `to`, side by side, in the order
// in which they lie.
void pack_input(const CollectiveArgs& args, int p, std::byte* to);
// Returns the same collective for an input that pack_input() has packed.
CollectiveArgs with_packed_input(const CollectiveArgs& args);

}  // namespace hyperrun
