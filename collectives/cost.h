// The cost of a collective: bytes exactly, time by the usual alpha-beta-gamma model. This is pure arithmetic.
// The executed requests are tested against it, and the simulator uses it.
//
// The wire bytes of a rank are the bytes that it moves between its own and another rank's memory. Each byte
// is counted once, by the rank that moves it: the sender of a message; on one host the rank that reads (or,
// in the last phase of an all-reduce, writes) the peer's memory. Over all ranks they add up to 2(p-1)n for a
// bandwidth-optimal all-reduce of n bytes, and (p-1)n for a reduce-scatter, all-gather or all-to-all whose
// whole tensor has n bytes: (p-1)/p n a rank. A shift moves all bytes that a rank holds.
#pragma once

#include <cstdint>

#include "collectives/selection.h"
#include "collectives/types.h"
#include "runtime/base/units.h"

namespace hyperrun {

struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Returns part i of n elements cut into p. The parts are equal but for the last ones, and are multiples of 16
// so that no two ranks write one cache line.
Slice slice(std::int64_t n, int p, int i);

// The place of a rank in its group.
struct Place {
  GroupShape shape;
  int index = 0;        // in the group
  int local_index = 0;  // among the members on its host
  int host_index = 0;   // host of the rank, among the group's hosts in order of appearance

  bool operator==(const Place&) const = default;
};

Bytes wire_bytes(const CollectiveArgs& args, Algorithm algorithm, const Place& place);

// The part of wire_bytes() that goes to members on the same host. For a hierarchical all-reduce it includes
// the bytes read there. Members on one host must follow one another in the group; the result is 0 if hosts
// have different numbers of them.
Bytes bytes_within_host(const CollectiveArgs& args, Algorithm algorithm, const Place& place);

// The cost of one link, and of the reduction beside it.
struct LinkCost {
  double alpha = 0;  // ns a message
  double beta = 0;   // ns a byte
  double gamma = 0;  // ns a byte reduced
};

// Returns the time of one collective on an otherwise idle machine. `inside` serves ranks of one host (all of
// them for kOneShot and kDirect), `between` serves all messages.
Nanos time(const CollectiveArgs& args, Algorithm algorithm, const GroupShape& shape, const LinkCost& inside,
           const LinkCost& between);

}  // namespace hyperrun
