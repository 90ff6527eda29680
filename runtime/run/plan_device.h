// One plan on this device, of those that the run has: what it runs, where its text comes from, its
// checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/control/device_link.h"
#include "runtime/device/executor.h"
#include "runtime/device/state_files.h"
#include "runtime/model/text/sampler.h"
#include "runtime/run/device_progress.h"
#include "runtime/spec/session_io.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class PlanDevice {
 public:
  // What the plans of a device share. All of it outlives them.
  struct Surroundings {
    DeviceMemory memory;
    World& world;
    control::DeviceStatus& status;
    DeviceWhereabouts& whereabouts;
    bool thread_per_stream = false;
  };

  // `session` outlives it, and this device is one of its ranks. `tokens`: of its corpus; none: nothing is
  // trained. `first_key`: of its groups (plan_world.h).
  PlanDevice(const Session& session, std::vector<std::int32_t> tokens, int first_key,
             const Surroundings& around);

  // `program`: of the session's, or one of the device's own (protocol.h). The invocation's result, but its
  // id.
  tasks::InvocationDone run(std::int32_t program, const tasks::Invocation& invocation);

 private:
  void look_up_durations();
  void compute(std::size_t program, const tasks::Invocation& invocation, tasks::InvocationDone& done);
  StateContext state() const { return {session_.plan, around_.memory, world_, everyone_}; }
  void save(std::int64_t step) const;

  const Session& session_;
  const Surroundings around_;
  const PlanWorld world_;
  Group& everyone_;
  std::vector<std::int32_t> tokens_;
  std::optional<Sampler> sampler_;
  Feed feed_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::vector<Nanos>> durations_;  // by Program, of its instructions; on the paced clock
  std::int64_t shift_;                         // from this host's steady clock to Unix time, ns
};

}  // namespace hyperrun
