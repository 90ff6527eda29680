// A strided piece of a tensor: up to three loops around a contiguous run. What one rank sends to another
// or takes from it, without packing.
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

// Whole blocks of equal bytes; the loops may differ.
void copy(const Block& to, const Block& from);
// The bytes [offset, offset + bytes) of a block, from or to contiguous memory.
void pack(std::byte* to, const Block& from, std::int64_t offset, std::int64_t bytes);
void unpack(const Block& to, std::int64_t offset, const std::byte* from, std::int64_t bytes);

Block contiguous_block(const std::byte* base, std::int64_t bytes);

// A block for each peer, alike but for their places.
struct Blocks {
  Block first;
  std::int64_t step = 0;  // bytes from one peer's to the next one's

  Block of(int peer) const { return of(peer, first.base); }
  // The same in another buffer.
  Block of(int peer, const std::byte* base) const {
    Block block = first;
    block.base = const_cast<std::byte*>(base) + peer * step;
    return block;
  }
};

// Of a kReduceScatter or kAllGather: the members' parts of a tensor [outer, p, inner], and one of [outer,
// inner].
Blocks parts_of_all(const CollectiveArgs& args, int p, const std::byte* base);
Block own_part(const CollectiveArgs& args, const std::byte* base);
// What a rank sends to each peer, in its input, and what it takes from each, in its output.
Blocks all_to_all_sources(const CollectiveArgs& args, int p, const std::byte* in);
Blocks all_to_all_targets(const CollectiveArgs& args, int p, const std::byte* out);
// The elements of an input that take part, in the order in which they lie, side by side in `to`.
void pack_input(const CollectiveArgs& args, int p, std::byte* to);
// The same collective of an input that is packed so.
CollectiveArgs with_packed_input(const CollectiveArgs& args);

}  // namespace hyperrun
