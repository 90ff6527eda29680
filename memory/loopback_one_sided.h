// One-sided memory between threads of one process, for devices as threads (runtime/device/device_threads.h).
// A put or get is a copy that happens in test(), so that tests can observe operations in flight.
#pragma once

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "memory/arena.h"
#include "memory/one_sided.h"

namespace hyperrun {

class LoopbackOneSided : public OneSidedPort {
 public:
  // `segments`: by rank, the memory that it lends.
  explicit LoopbackOneSided(std::vector<Arena> segments) : segments_(std::move(segments)) {}

  void get(int lane, std::byte* into, Bytes bytes, int rank, Bytes offset) override {
    at(lane) = {into, segments_[static_cast<std::size_t>(rank)].view(offset, bytes).data(), bytes};
  }
  void put(int lane, const std::byte* from, Bytes bytes, int rank, Bytes offset) override {
    at(lane) = {segments_[static_cast<std::size_t>(rank)].view(offset, bytes).data(), from, bytes};
  }
  bool test(int lane) override {
    std::memcpy(at(lane).to, at(lane).from, static_cast<std::size_t>(at(lane).bytes.value));
    return true;
  }
  void serve() override {}

 private:
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    Bytes bytes{};
  };
  Copy& at(int lane) { return lanes_[static_cast<std::size_t>(lane)]; }

  std::vector<Arena> segments_;
  std::array<Copy, kLanes> lanes_;
};

}  // namespace hyperrun
