// One emulated NPU in this process: its memory, its messages, and the plans that run on it. The main thread
// executes the controller's commands and owns MPI. With one thread a stream, the thread of the comm stream
// owns MPI while a Program runs.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/world.h"
#include "memory/mpi_pool.h"
#include "memory/shared_window.h"
#include "runtime/control/device_link.h"
#include "runtime/run/device_progress.h"
#include "runtime/run/plan_device.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

class Device {
 public:
  Device(control::DeviceLink& link, control::DeviceStatus& status, DeviceProgress& progress,
         std::atomic<bool>& cancel)
      : link_(link), status_(status), progress_(progress), cancel_(cancel) {}

  // Executes commands until the controller shuts the device down. MPI must have been started.
  void serve();

 private:
  tasks::Command next_command();
  void start();
  void start_tiers();
  void reach_peers();
  std::vector<RemoteMemory*> remotes() const;
  void start_plans(bool threads);
  std::vector<Bytes> pool_parts() const;
  std::vector<std::int32_t> shared_tokens(const Session& session) const;
  void invoke(const tasks::Invocation& invocation);

  control::DeviceLink& link_;
  control::DeviceStatus& status_;
  DeviceProgress& progress_;
  std::atomic<bool>& cancel_;
  std::vector<Session> sessions_;
  std::unique_ptr<MpiHosts> hosts_;
  std::optional<Arena> arena_;
  std::unique_ptr<MpiPool> pool_;        // null if no plan uses the pool
  std::unique_ptr<Backing> flash_;       // null if no plan uses flash here
  std::unique_ptr<RemoteMemory> peers_;  // HBM of ranks on other hosts; null if no plan fetches from there
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<PlanDevice>> plans_;  // by session; null if this rank is not one of its devices
};

}  // namespace hyperrun
