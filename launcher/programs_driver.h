// What drivers of several programs have in common: the devices get all sessions, an invocation is of one of
// them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "launcher/programs_recorder.h"
#include "runtime/spec/session_io.h"
#include "runtime/tasks/task_driver.h"

namespace hyperrun {

class ProgramsDriver : public tasks::TaskDriver {
 public:
  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>& devices) final;
  void on_failed(const Error& cause) final;

 protected:
  // What it is given outlives it.
  ProgramsDriver(tasks::DeviceGroups groups, tasks::TaskScheduler::Options options,
                 const std::vector<Session>& sessions, ProgramsRecorder& recorder);

  virtual void start() = 0;  // submits the first tasks

  // As invocations count programs: one of the session's plan, or one that all sessions have.
  std::int32_t number(std::size_t session, std::string_view program) const;
  static std::int32_t number_of_all(std::size_t session, std::int32_t program);

  // Throws kNotFinite, which ends the run, after `step` steps.
  static void require_finite(double loss, double grad_norm, std::int64_t step);

 private:
  const std::vector<Session>& sessions_;
  ProgramsRecorder& recorder_;
};

}  // namespace hyperrun
