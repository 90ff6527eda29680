// One plan of the run on this device: executes its Programs, feeds its text, loads and saves its state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/control/device_link.h"
#include "runtime/device/executor.h"
#include "runtime/device/state_files.h"
#include "runtime/device/state_saver.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/sampler.h"
#include "runtime/rank/device_progress.h"
#include "runtime/spec/session_io.h"
#include "runtime/tasks/messages.h"

namespace hyperrun {

class PlanDevice {
 public:
  // The parts of a device that its plans share. They must outlive the plans.
  struct SharedParts {
    DeviceMemory memory;
    World& world;
    control::DeviceStatus& status;
    DeviceProgress& progress;
    bool thread_per_stream = false;
  };

  // `session` must outlive the object, and have this device among its ranks. `tokens` is the session's
  // corpus, empty if it trains on none. `first_key` is the first key of its groups (plan_world.h).
  PlanDevice(const Session& session, std::shared_ptr<const std::vector<std::int32_t>> tokens, int first_key,
             const SharedParts& shared);

  // Runs a Program of the session's plan, or one of the device's own (protocol.h). Returns the result, with
  // its id unset.
  tasks::InvocationDone run(std::int32_t program, const tasks::Invocation& invocation);

 private:
  void look_up_durations();
  void compute(std::size_t program, const tasks::Invocation& invocation, tasks::InvocationDone& done);
  StateContext state() const { return {session_.plan, shared_.memory, world_, everyone_}; }
  void save(const tasks::Invocation& invocation);
  void flip(const tasks::Invocation& invocation) const;
  std::filesystem::path checkpoint(std::int64_t step) const;
  void begin_checkpoint(std::int64_t step);
  void save_part(const tasks::Invocation& invocation);
  void save(const tasks::Invocation& invocation, const StateSaver::Target& target);
  void end_checkpoint(const tasks::Invocation& invocation);
  Unsplit unsplit(std::int64_t step) const;

  const Session& session_;
  const SharedParts shared_;
  const PlanWorld world_;
  Group& everyone_;
  std::shared_ptr<const std::vector<std::int32_t>> tokens_;
  std::unique_ptr<AtomicDirectory> begun_;  // a checkpoint of several sessions that this device has begun
  StateSaver saver_;                        // it may be writing there, so it ends first
  std::optional<Sampler> sampler_;
  Feed feed_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::vector<Nanos>> durations_;  // by Program and instruction; only on the paced clock
  std::int64_t shift_;                         // Unix time minus this host's steady clock, ns
};

}  // namespace hyperrun
