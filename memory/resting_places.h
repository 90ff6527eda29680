// Places that are not used again at once. Who writes where another has just read or sent waits for it, though
// the two have nothing to do with each other: with as many places as fit below the peak, most do not.
#pragma once

#include <cstdint>
#include <span>

#include "memory/offset_allocator.h"
#include "runtime/base/units.h"

namespace hyperrun {

// Positions that a place should rest between two buffers: what streams may be apart by.
inline constexpr std::int32_t kRest = 16;

// Moves buffers that live shortly to where nobody was for `rest` positions before them, nor will be for as
// many after them, or for half as many, and so on, as far as there is room below the highest byte, which is
// no higher then. (Of what lives long near them, `rest` positions at once.)
void let_places_rest(std::span<const Lifetime> lifetimes, Assignment& assignment, Bytes alignment = Bytes(64),
                     std::int32_t rest = kRest);

}  // namespace hyperrun
