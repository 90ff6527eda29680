// The devices that each process of a run hosts.
//
//   8 devices in 3 processes:   0 1 | 2 3 4 | 5 6 7
#pragma once

#include <cstdint>

namespace hyperrun {

// Consecutive devices.
struct DeviceBlock {
  int first = 0;
  int count = 1;

  int end() const { return first + count; }
  bool contains(int device) const { return device >= first && device < end(); }
  bool operator==(const DeviceBlock&) const = default;
};

// The block of a process. The blocks of all processes hold every device once, and their counts differ by one
// at most. There are at least as many devices as processes.
constexpr DeviceBlock block_of(int process, int processes, int devices) {
  const auto first = [&](std::int64_t p) { return static_cast<int>(p * devices / processes); };
  return {first(process), first(process + 1) - first(process)};
}

// The process whose block has the device.
constexpr int process_of(int device, int processes, int devices) {
  return static_cast<int>(((std::int64_t{device} + 1) * processes - 1) / devices);
}

}  // namespace hyperrun
