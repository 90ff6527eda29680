#include "runtime/device/device_crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <thread>

#include "collectives/group.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr int kDevices = 12;

// Devices of one process; with one thread they have one sharer.
struct Devices {
  explicit Devices(int threads) : crew(kDevices, threads) {
    worlds = make_in_process_worlds(arenas, Topology::one_host(kDevices),
                                    {.cancel = &cancel, .sharer = crew.sharer(0)});
    for (const auto& world : worlds) pointers.push_back(world.get());
  }

  void run(const std::function<void(int device)>& body) {
    crew.run(pointers, body, [this] { cancel = true; });
  }

  std::atomic<bool> cancel{false};
  DeviceCrew crew;
  std::vector<Arena> arenas = make_in_process_arenas(kDevices, kMiB);
  std::vector<std::unique_ptr<World>> worlds;
  std::vector<World*> pointers;
};

std::vector<int> everyone() {
  std::vector<int> all(kDevices);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Sums over all devices, one after the other, on one thread: each device waits for eleven others that have no
// other thread to run on.
TEST(DeviceCrew, DevicesOfOneThreadWaitForEachOther) {
  Devices devices(1);
  std::set<std::thread::id> threads;
  devices.run([&](int d) {
    Arena& arena = devices.arenas[static_cast<std::size_t>(d)];
    World& world = *devices.worlds[static_cast<std::size_t>(d)];
    Group& group = world.make_group(0, everyone());
    threads.insert(std::this_thread::get_id());
    auto* value = reinterpret_cast<float*>(arena.base());
    for (int round = 0; round < 100; ++round) {
      *value = static_cast<float>(d + round);
      world.wait(*group.start(
          {.kind = Collective::kAllReduce, .in = arena.base(), .out = arena.base(), .inner = 1}));
      ASSERT_EQ(*value, static_cast<float>(kDevices * (kDevices - 1) / 2 + kDevices * round));
    }
  });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
#endif
}

TEST(DeviceCrew, ADeviceHasItsThreadWhereThereAreAsMany) {
  Devices devices(kDevices);
  EXPECT_EQ(devices.crew.sharer(3), nullptr);
  std::atomic<int> inside{0};
  devices.run([&](int) {
    ++inside;
    while (inside < kDevices) std::this_thread::yield();  // ends only where all run at once
  });
}

// The others wait for a device that has failed until they are told.
TEST(DeviceCrew, TheFirstErrorIsRethrownWhenAllHaveEnded) {
  for (const int threads : {1, kDevices}) {
    Devices devices(threads);
    std::atomic<int> begun{0};
    const auto body = [&](int d) {
      World& world = *devices.worlds[static_cast<std::size_t>(d)];
      Group& group = world.make_group(0, everyone());
      ++begun;
      if (d == 5) throw Error(Code::kNotFinite, "the loss is nan");
      world.wait(*group.start({.kind = Collective::kBarrier}));
      ADD_FAILURE() << "a barrier without device 5";
    };
    try {
      devices.run(body);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kNotFinite);
    }
    EXPECT_EQ(begun, kDevices);
  }
}

TEST(DeviceCrew, HasAsManyThreadsAsCoresAreLeft) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(threads_of_crew(1000 * cores, 1), cores);
  EXPECT_EQ(threads_of_crew(1, 1), 1);
  EXPECT_EQ(threads_of_crew(48, 100 * cores), 1);
}

}  // namespace
}  // namespace hyperrun
