// The threads on which the devices of a process run: each on one of its own, or several on one, where they
// take turns as fibers. A fiber goes on until its device has to wait. So hundreds of devices that wait for
// each other cost no switch of threads.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collectives/world.h"

namespace hyperrun {

class DeviceCrew {
 public:
  // `devices` devices on `threads` threads, consecutive ones together. With as many threads as devices each
  // has its own. One thread alone is the caller's.
  DeviceCrew(int devices, int threads);
  ~DeviceCrew();
  DeviceCrew(const DeviceCrew&) = delete;
  DeviceCrew& operator=(const DeviceCrew&) = delete;

  // Null if the device has its thread to itself.
  ThreadSharer* sharer(int device) const;

  // Calls `body` for every device and returns when all have ended. `worlds` are theirs, made with sharer() in
  // their options. `failed` is called after each exception; it must see to it that the others end. The first
  // exception is rethrown at the end.
  void run(std::span<World* const> worlds, const std::function<void(int device)>& body,
           const std::function<void()>& failed);

 private:
  class Fibers;

  int devices_;
  std::vector<std::unique_ptr<Fibers>> fibers_;  // by thread; empty if each device has its own
};

// The number of threads for `devices` devices of one of `processes` processes on this host, if each may share
// its thread: as many as there are cores.
int threads_of_crew(int devices, int processes);

}  // namespace hyperrun
