// The base of all drivers of runs: sends the sessions to the devices, and numbers the Programs of
// invocations.
//
//   sessions  0: encoder  1: stage 0  2: stage 1   each has one plan and its own devices
//   program   session * kProgramsOfASession + index in the session's plan
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/run/chaos.h"
#include "runtime/run/recorder.h"
#include "runtime/spec/session_io.h"
#include "runtime/tasks/task_driver.h"

namespace hyperrun {

// The facts that a driver knows of the failure that it has found.
struct Setback {
  std::optional<std::int64_t> diverged;  // number of steps done, the one that has diverged among them
  std::optional<std::int64_t> trusted;   // checkpoints after later steps may hold corrupted state
};

class RunDriver : public tasks::TaskDriver {
 public:
  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>& devices) final;

  // Calls `failed` as soon as the reason is known why the run cannot go on. Without it a failure is told by
  // the outcome alone.
  void when_failed(std::function<void(const Error&)> failed) { failed_ = std::move(failed); }
  void on_failed(const Error& cause) final;
  // Valid once the run has failed.
  virtual Setback setback() const { return {}; }

  // Whether the driver has ended for now, behind a checkpoint, and another one is to go on.
  virtual bool paused() const { return false; }

  // Has the run inject faults. `chaos` must outlive the driver.
  void inject(Chaos& chaos) { chaos_ = &chaos; }

 protected:
  // The sessions and the recorder must outlive the driver. `recorder` is null if nothing is recorded.
  RunDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
            std::span<const Session> sessions, Recorder* recorder);

  // Submits the first tasks.
  virtual void start() = 0;

  void issuing(tasks::Invocation& invocation, std::span<const std::int32_t> devices) final;

  // The number of a Program of a session's plan in invocations.
  std::int32_t number(std::size_t session, std::string_view program) const;
  // The number of a Program by its index in the plan, or by its index in protocol.h.
  static std::int32_t number_of_index(std::size_t session, std::int32_t index);

 private:
  std::span<const Session> sessions_;
  Recorder* recorder_;
  std::function<void(const Error&)> failed_;
  Chaos* chaos_ = nullptr;
};

}  // namespace hyperrun
