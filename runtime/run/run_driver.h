// What the drivers of all runs have in common: the devices get the sessions, and an invocation is a task of
// one of them.
//
//   sessions  0: encoder  1: stage 0  2: stage 1   a plan each, on devices of its own
//   program   session * kProgramsOfASession + place in the session's plan
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

  // Writes what there is of the run, and says why it ended.
  void on_failed(const Error& cause) override;

 protected:
  // The sessions and the recorder outlive the driver. `recorder`: null where nothing is written down.
  RunDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
            std::span<const Session> sessions, Recorder* recorder);

  // Submits the first tasks.
  virtual void start() = 0;

  // The number of a Program of a session's plan, as invocations have it.
  std::int32_t number(std::size_t session, std::string_view program) const;
  // The number of a Program that every session has (protocol.h).
  static std::int32_t number_of_all(std::size_t session, std::int32_t program);

  // Throws kNotFinite, which ends the run, after `step` steps.
  static void require_finite(double loss, double grad_norm, std::int64_t step);

 private:
  std::span<const Session> sessions_;
  Recorder* recorder_;
};

}  // namespace hyperrun
