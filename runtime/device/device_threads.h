// The devices of a plan as threads of one process, without MPI: their arenas and worlds, and the handling of
// errors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/world.h"
#include "memory/pool_placement.h"
#include "memory/remote_memory.h"
#include "runtime/device/device_crew.h"
#include "runtime/device/device_memory.h"
#include "runtime/ir/tier.h"

namespace hyperrun {

class DeviceThreads {
 public:
  // Makes one device for each rank of the topology, with `hbm` each. `planned` are the bytes of each tier
  // that the plan will use. Files of flash go to `folder`. `pool` places the parts of the pool if some are on
  // other hosts. With `share` devices that outnumber the cores share threads (device_crew.h): then a device
  // waits only in its World, and its Executor has no thread for each stream.
  DeviceThreads(const Topology& topology, Bytes hbm, const TierBytes& planned, const std::string& folder = "",
                const PoolPlacement& pool = {}, bool share = false);

  int size() const { return static_cast<int>(arenas_.size()); }
  Arena& arena(int device) { return arenas_[static_cast<std::size_t>(device)]; }
  DeviceMemory memory(int device) {
    const auto d = static_cast<std::size_t>(device);
    return {arenas_[d], pools_[d].get(), files_[d].get()};
  }
  World& world(int device) { return *worlds_[static_cast<std::size_t>(device)]; }

  // Calls `body` for every device, in a thread that computes as an Executor's own does; returns when all have
  // ended. The first error cancels the other devices and is rethrown; nothing runs afterwards.
  void run(const std::function<void(int device)>& body);

 private:
  void spread_pool(const PoolPlacement& placement);
  void make_worlds(const Topology& topology);

  std::atomic<bool> cancel_{false};
  std::vector<Arena> arenas_;
  std::vector<std::unique_ptr<RemoteMemory>> remotes_;   // empty if no part of the pool is on another host
  std::vector<std::unique_ptr<Backing>> pools_, files_;  // empty if the plan does not use the tier
  DeviceCrew crew_;
  std::vector<std::unique_ptr<World>> worlds_;
};

}  // namespace hyperrun
