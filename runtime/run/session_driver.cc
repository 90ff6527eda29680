#include "runtime/run/session_driver.h"

#include <utility>

namespace hyperrun {

SessionDriver::SessionDriver(const Session& session, Recorder* recorder)
    : RunDriver(control::DeviceGroups(session.job.supernode.devices),
                {.scheduling = control::Scheduling::kStatic, .window = control::kWindow},
                std::span(&session, 1), recorder),
      session_(session) {
  scheduler().add_program({});
  scheduler().add_place({control::kEveryDevice});
}

// Submits tasks until one window is full. Later tasks may depend on results that have not arrived yet.
void SessionDriver::submit() {
  while (std::ssize(invocations_) < control::kWindow) {
    std::optional<control::Invocation> invocation = next();
    if (!invocation) return;
    const control::TaskId id = scheduler().submit({.step = invocation->step});
    invocations_.emplace(id, *std::move(invocation));
  }
}

control::Invocation SessionDriver::invocation_of(control::TaskId id, const control::TaskSpec&,
                                                 control::GroupId) {
  return invocations_.at(id);
}

void SessionDriver::on_task_done(control::TaskId id, const control::TaskSpec&,
                                 std::span<const control::InvocationDone> results) {
  const auto invocation = invocations_.find(id);
  done(invocation->second, results);
  invocations_.erase(invocation);
  submit();
}

}  // namespace hyperrun
