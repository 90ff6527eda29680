#pragma once

#include <cstddef>
#include <functional>

namespace hyperrun {

// Calls f(0) to f(n - 1), on as many threads as there are cores; in the caller's alone when n is 1. Calls
// that are nested or run beside each other share the cores. Returns when all have ended, and rethrows the
// first exception.
void parallel_for(std::size_t n, const std::function<void(std::size_t)>& f);

}  // namespace hyperrun
