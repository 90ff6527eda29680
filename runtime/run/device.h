// This process as an emulated NPU: memory and messages of one device, and the plans that run on it. The main
// thread owns MPI (with a thread a stream, the comm stream's thread does during a Program) and executes what
// the controller sends.
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
  Device(control::DeviceLink& link, control::DeviceStatus& status, DeviceWhereabouts& whereabouts,
         std::atomic<bool>& cancel)
      : link_(link), status_(status), whereabouts_(whereabouts), cancel_(cancel) {}

  // Until the controller lets it go. MPI has been started.
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
  DeviceWhereabouts& whereabouts_;
  std::atomic<bool>& cancel_;
  std::vector<Session> sessions_;
  std::unique_ptr<MpiHosts> hosts_;
  std::optional<Arena> arena_;
  std::unique_ptr<MpiPool> pool_;        // none where no plan uses any,
  std::unique_ptr<Backing> flash_;       // of either
  std::unique_ptr<RemoteMemory> peers_;  // HBM of other hosts' ranks; none where no plan fetches from there
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<PlanDevice>> plans_;  // by session; none where this rank has no part in it
};

}  // namespace hyperrun
