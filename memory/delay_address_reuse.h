// Delays the reuse of addresses. A buffer that reuses addresses right away must wait for the last use of the
// former buffer there, although the two are unrelated. Room below the peak is spread over more addresses, so
// that few buffers have to wait.
#pragma once

#include <cstdint>
#include <span>

#include "memory/offset_allocator.h"
#include "runtime/base/units.h"

namespace hyperrun {

// Positions that should lie between two buffers at one address. Streams may drift apart by about so much.
inline constexpr std::int32_t kReuseDistance = 16;

// Moves short-lived buffers to addresses that are unused for `distance` positions before and after them. If
// there is no such room below the peak, half the distance is tried, and so on. The peak does not rise. The
// full distance always holds to long-lived buffers nearby.
void delay_address_reuse(std::span<const Lifetime> lifetimes, Assignment& assignment,
                         Bytes alignment = Bytes(64), std::int32_t distance = kReuseDistance);

}  // namespace hyperrun
