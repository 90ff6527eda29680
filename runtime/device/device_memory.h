// The tiers of an emulated NPU.
#pragma once

#include "memory/arena.h"
#include "memory/backing.h"
#include "memory/remote_memory.h"
#include "runtime/base/error.h"
#include "runtime/ir/tier.h"

namespace hyperrun {

// Its members must outlive it. A tier that no Program of the device uses may be missing.
struct DeviceMemory {
  Arena& hbm;
  Backing* pool = nullptr;
  Backing* flash = nullptr;
  RemoteMemory* peers = nullptr;  // HBM of ranks on other hosts

  DeviceMemory(Arena& arena, Backing* pool = nullptr, Backing* flash = nullptr, RemoteMemory* peers = nullptr)
      : hbm(arena), pool(pool), flash(flash), peers(peers) {}

  Backing* find(Tier tier) const {
    return tier == Tier::kPool ? pool : tier == Tier::kFlash ? flash : nullptr;
  }
  Backing& beyond(Tier tier) const {
    Backing* backing = find(tier);
    HR_CHECK(backing != nullptr, "the device has no " + std::string(name(tier)));
    return *backing;
  }
};

}  // namespace hyperrun
