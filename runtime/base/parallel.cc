#include "runtime/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/time_limit.h"

namespace hyperrun {
namespace {

// Threads that all calls under way have started.
std::atomic<std::size_t> started{0};

// Reserves up to `wanted` threads, as far as cores are left beside the main thread.
std::size_t reserve(std::size_t wanted) {
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency()) - 1;
  std::size_t now = started;
  std::size_t granted = 0;
  do granted = std::min(wanted, most - std::min(most, now));
  while (!started.compare_exchange_weak(now, now + granted));
  return granted;
}

}  // namespace

void parallel_for(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto end = TimeLimit::of_this_thread();
  const auto work = [&] {
    const TimeLimit limit(end);
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        f(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  const std::size_t threads = n > 1 ? reserve(n - 1) : 0;
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 0; t < threads; ++t) others.emplace_back(work);
    work();
  }
  started -= threads;
  if (error) std::rethrow_exception(error);
}

}  // namespace hyperrun
