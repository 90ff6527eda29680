#include "runtime/run/session_driver.h"

#include <utility>

namespace hyperrun {

SessionDriver::SessionDriver(const Session& session, Recorder* recorder)
    : RunDriver(tasks::DeviceGroups(session.job.supernode.devices),
                {.scheduling = tasks::Scheduling::kStatic, .window = tasks::kWindow}, std::span(&session, 1),
                recorder),
      session_(session) {
  scheduler().add_program({});
  scheduler().add_place({tasks::kEveryDevice});
}

// Submits tasks until one window is full. Later tasks may depend on results that have not arrived yet.
void SessionDriver::submit() {
  while (std::ssize(invocations_) < tasks::kWindow) {
    std::optional<tasks::Invocation> invocation = next();
    if (!invocation) return;
    const tasks::TaskId id = scheduler().submit({.step = invocation->step});
    invocations_.emplace(id, *std::move(invocation));
  }
}

tasks::Invocation SessionDriver::invocation_of(tasks::TaskId id, const tasks::TaskSpec&, tasks::GroupId) {
  return invocations_.at(id);
}

void SessionDriver::on_task_done(tasks::TaskId id, const tasks::TaskSpec&,
                                 std::span<const tasks::InvocationDone> results) {
  const auto invocation = invocations_.find(id);
  done(invocation->second, results);
  invocations_.erase(invocation);
  submit();
}

}  // namespace hyperrun
