#include "runtime/device/device_threads.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "collectives/group.h"
#include "memory/loopback_one_sided.h"
#include "memory/spread_pool.h"
#include "runtime/device/kernels/thread.h"

namespace hyperrun {

DeviceThreads::DeviceThreads(const Topology& topology, Bytes hbm, const TierBytes& planned,
                             const std::string& folder, const PoolPlacement& pool, bool share)
    : arenas_(make_in_process_arenas(topology.size(), hbm, planned[index_of(Tier::kHbm)])),
      pools_(arenas_.size()),
      files_(arenas_.size()),
      crew_(topology.size(), share ? threads_of_crew(topology.size(), 1) : topology.size()) {
  spread_pool(pool);
  make_worlds(topology);
  if (const Bytes part = planned[index_of(Tier::kPool)]; part.value > 0 && remotes_.empty()) {
    std::vector<Arena> segments = make_in_process_arenas(topology.size(), part);
    for (std::size_t d = 0; d < segments.size(); ++d)
      pools_[d] = std::make_unique<PoolBacking>(std::move(segments[d]));
  }
  if (const Bytes flash = planned[index_of(Tier::kFlash)]; flash.value > 0)
    for (auto& file : files_) file = std::make_unique<FlashBacking>(folder, flash);
  kernels::use_calling_thread_only();
}

void DeviceThreads::spread_pool(const PoolPlacement& placement) {
  if (!placement.spills()) return;
  const std::vector<Arena> segments =
      make_in_process_arenas(static_cast<int>(arenas_.size()), *std::ranges::max_element(placement.segments));
  for (std::size_t d = 0; d < segments.size(); ++d) {
    remotes_.push_back(
        std::make_unique<RemoteMemory>(std::make_unique<LoopbackOneSided>(segments), &cancel_));
    pools_[d] = std::make_unique<SpreadPool>(segments[d], placement.parts[d], *remotes_[d]);
  }
}

void DeviceThreads::make_worlds(const Topology& topology) {
  std::vector<WorldOptions> options(arenas_.size());
  for (std::size_t d = 0; d < options.size(); ++d) {
    options[d] = {.cancel = &cancel_, .sharer = crew_.sharer(static_cast<int>(d))};
    if (!remotes_.empty()) options[d].remotes = {remotes_[d].get()};
  }
  worlds_ = make_in_process_worlds(arenas_, topology, options);
}

void DeviceThreads::run(const std::function<void(int device)>& body) {
  std::vector<World*> worlds;
  for (const auto& world : worlds_) worlds.push_back(world.get());
  std::exception_ptr error;
  // The caller's thread keeps its own arithmetic.
  std::jthread([&] {
    try {
      const auto device = [&](int d) {
        kernels::flush_denormals(true);
        const RemoteMemory::Owner owner(remotes_.empty() ? nullptr
                                                         : remotes_[static_cast<std::size_t>(d)].get());
        body(d);
      };
      crew_.run(worlds, device, [this] { cancel_ = true; });
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

}  // namespace hyperrun
