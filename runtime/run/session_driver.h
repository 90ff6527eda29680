// A driver of one session on all devices: invocations go out one after the other, as far ahead of their
// results as the devices have room.
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
  // The session and the recorder outlive the driver. `recorder`: null where nothing is written down.
  SessionDriver(const Session& session, Recorder* recorder);

  // The invocation to issue behind those that have been. nullopt: none before another one is done, or, where
  // none is under way, the run has ended.
  virtual std::optional<tasks::Invocation> next() = 0;
  // In the order of issue. An Error thrown here ends the run.
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
  std::map<tasks::TaskId, tasks::Invocation> invocations_;  // that are submitted and not done
};

}  // namespace hyperrun
