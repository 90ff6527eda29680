// A collective: its kind, its numbers and the shapes of its buffers. These are plain values without MPI,
// shared by the executor, the simulator and the cost formulas.
//
// p is the size of the group, "my index" the place of this rank in it. All extents count elements.
//
//   kind             in                       out
//   kAllReduce       [outer, inner]           [outer, inner]       in == out is in place
//   kReduceScatter   [outer, p, inner]        [outer, inner]       my index of the middle dimension
//   kAllGather       [outer, inner]           [outer, p, inner]
//   kAllToAll        see AllToAllShape        see AllToAllShape    the split moves between dimensions
//   kAllToAllV       blocks, one a peer       blocks, one a peer   flat; blocks in the order of the peers
//                                                                  or at the starts given
//   kShift           [outer, inner]           [outer, inner]       to the next member, from the one before;
//                                                                  the first follows the last
//   kBroadcast       [outer, inner] at peer   [outer, inner]       only the root reads in
//   kSend, kRecv     [outer, inner]           [outer, inner]       to or from peer, in order
//   kBarrier         -                        -
//
// A kReduceScatter or kAllGather may exchange only a part of each member's elements, and a kAllToAll only a
// part of the positions of x: `runs` runs that begin `pitch` elements (positions) apart, in both buffers.
// inner (x / p) then counts the elements that take part, and a member has runs * pitch elements (positions):
//
//   member 0 |##..|##..|   member 1 |##..|##..|   runs 2, pitch 4, inner 4; of [outer, p, runs * pitch]
//
// Overlap: in and out may be the same buffer for kAllReduce and for the root of kBroadcast. kAllGather may
// find its input already at its place in out (in == out + my index * inner, outer == 1). Otherwise in and out
// are disjoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/dtype.h"

namespace hyperrun {

enum class Collective : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kAllToAllV,
  kShift,
  kBroadcast,
  kSend,
  kRecv,
  kBarrier,
};

std::string_view name(Collective kind);  // "all-reduce"

enum class ReduceOp : std::uint8_t { kSum, kMax };

// Tensor [a, x, b, y, c], row-major, split over the group along x or along y:
//   gather_x:   in [a, x/p, b, y, c] -> out [a, x, b, y/p, c]   (x becomes whole, y becomes split)
//   otherwise:  in [a, x, b, y/p, c] -> out [a, x/p, b, y, c]
// p divides x and y.
struct AllToAllShape {
  std::int64_t a = 1, x = 1, b = 1, y = 1, c = 1;
  bool gather_x = true;

  bool operator==(const AllToAllShape&) const = default;
};

struct CollectiveArgs {
  Collective kind = Collective::kBarrier;
  DType dtype = DType::kF32;  // kI32 moves, but is never summed
  ReduceOp op = ReduceOp::kSum;
  const std::byte* in = nullptr;  // in and out lie in the rank's arena, aligned to the element
  std::byte* out = nullptr;
  std::int64_t outer = 1;
  std::int64_t inner = 0;
  std::int64_t runs = 1, pitch = 0;  // pitch 0: all elements take part
  AllToAllShape all_to_all{};
  std::int32_t peer = 0;  // index in the group: root of a broadcast, the other side of a send or recv
  // For kAllToAllV: elements to and from each of the p peers; start() copies them.
  std::span<const std::int64_t> send_counts{}, recv_counts{};
  // For kAllToAllV: the first elements of these blocks, one for each peer, copied too. Empty: one after the
  // other.
  std::span<const std::int64_t> send_starts{}, recv_starts{};
};

// For kAllToAllV: the first element of a peer's block.
std::int64_t start_of(std::span<const std::int64_t> starts, std::span<const std::int64_t> counts, int peer);

// Elements that the operation is about: of the vector that is reduced, gathered, exchanged (the larger of
// what one rank holds before and after) or moved. For kAllToAllV: the elements that this rank sends.
std::int64_t elements(const CollectiveArgs& args, int p);

// Elements of this rank's input and output buffer that take part; for kAllToAllV up to the end of the last
// block.
std::int64_t in_elements(const CollectiveArgs& args, int p);
std::int64_t out_elements(const CollectiveArgs& args, int p);

// Elements from the first to the last that takes part, with those between the runs that do not.
std::int64_t in_extent(const CollectiveArgs& args, int p);
std::int64_t out_extent(const CollectiveArgs& args, int p);

}  // namespace hyperrun
