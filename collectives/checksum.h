// Checksums of what collectives move. The sender computes one for each message, the receiver checks it. They
// travel beside the messages and are not counted as moved bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/block.h"
#include "collectives/types.h"

namespace hyperrun {

std::uint64_t checksum(const std::byte* data, std::int64_t bytes);
std::uint64_t checksum(const Block& block);  // that of its bytes in logical order, side by side

// A message between two ranks of the world.
struct Passage {
  Collective kind;
  int from = -1, to = -1;
  std::int64_t bytes = 0;
};

// Throws kCorrupt, which names both ranks, unless the checksums are equal.
void require_equal(std::uint64_t sent, std::uint64_t received, const Passage& passage);

}  // namespace hyperrun
