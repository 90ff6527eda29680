#include "runtime/device/device_threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "collectives/group.h"
#include "memory/loopback_one_sided.h"
#include "memory/spread_pool.h"
#include "runtime/device/kernels/thread.h"

namespace hyperrun {

DeviceThreads::DeviceThreads(const Topology& topology, Bytes hbm, const TierBytes& planned,
                             const std::string& folder, const PoolPlacement& pool)
    : arenas_(make_in_process_arenas(topology.size(), hbm, planned[index_of(Tier::kHbm)])),
      pools_(arenas_.size()),
      files_(arenas_.size()),
      worlds_(make_in_process_worlds(arenas_, topology, {.cancel = &cancel_}, spread_pool(pool))) {
  if (const Bytes part = planned[index_of(Tier::kPool)]; part.value > 0 && remotes_.empty()) {
    std::vector<Arena> segments = make_in_process_arenas(topology.size(), part);
    for (std::size_t d = 0; d < segments.size(); ++d)
      pools_[d] = std::make_unique<PoolBacking>(std::move(segments[d]));
  }
  if (const Bytes flash = planned[index_of(Tier::kFlash)]; flash.value > 0)
    for (auto& file : files_) file = std::make_unique<FlashBacking>(folder, flash);
  kernels::use_calling_thread_only();
}

std::vector<RemoteMemory*> DeviceThreads::spread_pool(const PoolPlacement& placement) {
  if (!placement.spills()) return {};
  const std::vector<Arena> segments =
      make_in_process_arenas(static_cast<int>(arenas_.size()), *std::ranges::max_element(placement.segments));
  std::vector<RemoteMemory*> remotes;
  for (std::size_t d = 0; d < segments.size(); ++d) {
    remotes_.push_back(
        std::make_unique<RemoteMemory>(std::make_unique<LoopbackOneSided>(segments), &cancel_));
    pools_[d] = std::make_unique<SpreadPool>(segments[d], placement.parts[d], *remotes_[d]);
    remotes.push_back(remotes_[d].get());
  }
  return remotes;
}

void DeviceThreads::run(const std::function<void(int device)>& body) {
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int d = 0; d < size(); ++d)
    threads.emplace_back([&, d] {
      kernels::flush_denormals(true);
      try {
        const RemoteMemory::Owner owner(remotes_.empty() ? nullptr
                                                         : remotes_[static_cast<std::size_t>(d)].get());
        body(d);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
        cancel_ = true;
      }
    });
  for (std::thread& t : threads) t.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace hyperrun
