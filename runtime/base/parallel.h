#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hyperrun {

// Calls f(0) ... f(n - 1) on as many threads as there are cores; with n = 1 on the caller's thread alone.
// Returns when all calls have ended, and rethrows the first exception.
template <class F>
void parallel_for(std::size_t n, F f) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        f(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  const std::size_t threads = std::min<std::size_t>(n, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  others.clear();
  if (error) std::rethrow_exception(error);
}

}  // namespace hyperrun
