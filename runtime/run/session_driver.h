// The base of drivers with one session on all devices. Invocations are issued in order, ahead of their
// results, until the devices' window is full.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/run/run_driver.h"

namespace hyperrun {

class SessionDriver : public RunDriver {
 protected:
  // The session and the recorder must outlive the driver. `recorder` is null if nothing is recorded.
  SessionDriver(const Session& session, Recorder* recorder);

  // The next invocation to issue. nullopt: wait until another one is done; if none is under way, the run has
  // ended.
  virtual std::optional<tasks::Invocation> next() = 0;
  // Takes the results of an invocation, in the order of issue. An Error thrown here ends the run.
  virtual void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) = 0;

  const Session& session() const { return session_; }
  std::int32_t program(std::string_view name) const { return number(0, name); }

 private:
  void start() final { submit(); }
  tasks::Invocation invocation_of(tasks::TaskId id, const tasks::TaskSpec& task, tasks::GroupId group) final;
  void on_task_done(tasks::TaskId id, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) final;
  void submit();

  const Session& session_;
  std::map<tasks::TaskId, tasks::Invocation> invocations_;  // submitted and not yet done
};

}  // namespace hyperrun
