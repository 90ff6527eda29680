// The base of all drivers of runs: sends the sessions to the devices, and numbers the Programs of
// invocations.
//
//   sessions  0: encoder  1: stage 0  2: stage 1   each has one plan and its own devices
//   program   session * kProgramsOfASession + index in the session's plan
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/run/recorder.h"
#include "runtime/spec/session_io.h"
#include "runtime/tasks/task_driver.h"

namespace hyperrun {

class RunDriver : public tasks::TaskDriver {
 public:
  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>& devices) final;

  // Writes the results so far, and prints why the run ended.
  void on_failed(const Error& cause) override;

 protected:
  // The sessions and the recorder must outlive the driver. `recorder` is null if nothing is recorded.
  RunDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
            std::span<const Session> sessions, Recorder* recorder);

  // Submits the first tasks.
  virtual void start() = 0;

  // The number of a Program of a session's plan in invocations.
  std::int32_t number(std::size_t session, std::string_view program) const;
  // The number of a Program by its index in the plan, or by its index in protocol.h.
  static std::int32_t number_of_index(std::size_t session, std::int32_t index);

  // Throws kNotFinite, which ends the run, unless both values are finite. `step` is the number of steps done.
  static void require_finite(double loss, double grad_norm, std::int64_t step);

 private:
  std::span<const Session> sessions_;
  Recorder* recorder_;
};

}  // namespace hyperrun
