#include "runtime/device/device_threads.h"

#include <exception>
#include <mutex>
#include <thread>

#include "collectives/group.h"
#include "runtime/device/kernels/thread.h"

namespace hyperrun {

DeviceThreads::DeviceThreads(const Topology& topology, Bytes hbm, const TierBytes& planned,
                             const std::string& folder)
    : arenas_(make_in_process_arenas(topology.size(), hbm, planned[index_of(Tier::kHbm)])),
      pools_(arenas_.size()),
      files_(arenas_.size()),
      worlds_(make_in_process_worlds(arenas_, topology, {.cancel = &cancel_})) {
  if (const Bytes pool = planned[index_of(Tier::kPool)]; pool.value > 0) {
    std::vector<Arena> segments = make_in_process_arenas(topology.size(), pool);
    for (std::size_t d = 0; d < segments.size(); ++d)
      pools_[d] = std::make_unique<PoolBacking>(std::move(segments[d]));
  }
  if (const Bytes flash = planned[index_of(Tier::kFlash)]; flash.value > 0)
    for (auto& file : files_) file = std::make_unique<FlashBacking>(folder, flash);
  kernels::use_calling_thread_only();
}

void DeviceThreads::run(const std::function<void(int device)>& body) {
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int d = 0; d < size(); ++d)
    threads.emplace_back([&, d] {
      kernels::flush_denormals(true);
      try {
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
