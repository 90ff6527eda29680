// The devices of this process: their memory, their worlds and their threads. The main thread makes them, as
// all processes together make their windows and communicators; then each device serves the controller.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/world.h"
#include "memory/mpi_pool.h"
#include "memory/shared_window.h"
#include "runtime/control/device_link.h"
#include "runtime/device/device_crew.h"
#include "runtime/rank/device.h"
#include "runtime/rank/device_progress.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class LocalDevices {
 public:
  // `progress` has an element for each device of the process. All of these outlive the object.
  LocalDevices(control::DeviceLink& link, std::deque<DeviceProgress>& progress, std::atomic<bool>& cancel)
      : link_(link), progress_(progress), cancel_(cancel) {}

  // Executes commands until the controller shuts the devices down. MPI must have been started. `failed` is
  // called by the thread of a device that cannot go on, within the handler of its exception, and must end the
  // process; by the calling thread, with device -1, if the devices cannot be made.
  void serve(const std::function<void(int device)>& failed);

 private:
  void load();
  void start();
  void start_tiers();
  void reach_peers();
  void start_worlds();
  std::vector<RemoteMemory*> remotes(std::size_t device) const;
  std::vector<Bytes> pool_parts() const;
  std::vector<std::int32_t> shared_tokens(const Session& session) const;
  void serve_device(int number, const SharedSessions& shared);

  control::DeviceLink& link_;
  std::deque<DeviceProgress>& progress_;
  std::atomic<bool>& cancel_;
  std::vector<Session> sessions_;
  bool thread_per_stream_ = false;
  std::unique_ptr<MpiHosts> hosts_;
  // One element for each device of this process. pools_ and peers_ are empty if no plan uses them.
  std::vector<Arena> arenas_;
  std::vector<MpiPool> pools_;
  std::vector<std::unique_ptr<Backing>> flash_;       // null if no plan uses flash there
  std::vector<std::unique_ptr<RemoteMemory>> peers_;  // HBM of devices on other hosts
  std::unique_ptr<DeviceCrew> crew_;
  std::vector<std::unique_ptr<World>> worlds_;
};

}  // namespace hyperrun
