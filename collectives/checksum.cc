#include "collectives/checksum.h"

#include <fmt/core.h>
#define XXH_STATIC_LINKING_ONLY  // for a state on the stack
#include <xxhash.h>

#include "runtime/base/error.h"

namespace hyperrun {

std::uint64_t checksum(const std::byte* data, std::int64_t bytes) {
  return XXH3_64bits(data, static_cast<std::size_t>(bytes));
}

std::uint64_t checksum(const Block& block) {
  if (block.contiguous()) return checksum(block.base, block.run);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  BlockCursor cursor(block, 0);
  for (std::int64_t left = block.bytes(); left > 0;) {
    const std::int64_t n = cursor.left();
    XXH3_64bits_update(&state, cursor.data(), static_cast<std::size_t>(n));
    cursor.advance(n);
    left -= n;
  }
  return XXH3_64bits_digest(&state);
}

void require_equal(std::uint64_t sent, std::uint64_t received, const Passage& passage) {
  if (sent == received) return;
  throw Error(Code::kCorrupt, fmt::format("device {} has other bytes than device {} sent: {} of {} bytes",
                                          passage.to, passage.from, name(passage.kind), passage.bytes))
      .fix(
          fmt::format("test the memory of both hosts and the network between them; the devices are {} and {}",
                      passage.from, passage.to));
}

}  // namespace hyperrun
