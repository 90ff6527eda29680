// One emulated NPU: its memory, its messages, and the plans that run on it. It executes the controller's
// commands, in a thread of its own or in turns with others of its process.
#pragma once

#include <memory>
#include <vector>

#include "collectives/world.h"
#include "runtime/control/device_link.h"
#include "runtime/rank/device_progress.h"
#include "runtime/rank/plan_device.h"
#include "runtime/spec/session_io.h"

namespace hyperrun {

// The plans that the devices of a process share. `tokens` has an element for each session: its corpus, empty
// if it trains on none.
struct SharedSessions {
  const std::vector<Session>& sessions;
  std::vector<std::shared_ptr<const std::vector<std::int32_t>>> tokens;
};

class Device {
 public:
  struct Parts {
    int number = 0;
    control::DeviceLink& link;
    DeviceProgress& progress;
    DeviceMemory memory;
    World& world;
    ThreadSharer* sharer = nullptr;  // null: the device has its thread to itself
    bool thread_per_stream = false;
    bool serves_other_hosts = false;  // whether it keeps MPI progressing while it waits for a command
  };

  // Makes the device's plans. `shared` and what the parts refer to must outlive the device.
  Device(const Parts& parts, const SharedSessions& shared);

  // Executes commands until the controller shuts the device down.
  void serve();

 private:
  tasks::Command next_command();
  void invoke(const tasks::Invocation& invocation);

  const Parts parts_;
  std::vector<std::unique_ptr<PlanDevice>> plans_;  // by session; null if this is not one of its devices
};

}  // namespace hyperrun
