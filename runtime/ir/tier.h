// The tiers of memory: a device's own HBM, the pool that all devices share, a device's file on flash.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/units.h"

namespace hyperrun {

enum class Tier : std::uint8_t { kHbm, kPool, kFlash };
inline constexpr std::size_t kTiers = 3;
std::string_view name(Tier t);

constexpr std::size_t index_of(Tier t) { return static_cast<std::size_t>(t); }

using TierBytes = std::array<Bytes, kTiers>;

}  // namespace hyperrun
