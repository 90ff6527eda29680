// A driver whose invocations are the tasks of a TaskScheduler. Who derives from it submits tasks, at first in
// on_ready, later in on_task_done, and says what each task's invocation is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tasks/driver.h"
#include "runtime/tasks/in_flight.h"
#include "runtime/tasks/task_scheduler.h"

namespace hyperrun::control {

class TaskDriver : public Driver {
 public:
  std::vector<std::vector<std::int32_t>> device_groups() final;
  std::optional<Invocation> next_invocation() final { return std::nullopt; }  // next_within answers
  // Throws the scheduler's deadlock when nothing is in flight and tasks wait.
  std::optional<Invocation> next_within(const Dispatcher& dispatcher) final;
  void on_done(const Invocation& invocation, std::span<const InvocationDone> results) final;
  std::string describe(const Invocation& invocation) const final;  // "program reward, task 17"

  const TaskScheduler& tasks() const { return scheduler_; }

 protected:
  // window: of ControllerOptions, at least that of the scheduler.
  TaskDriver(DeviceGroups groups, TaskScheduler::Options options) : scheduler_(std::move(groups), options) {}
  TaskScheduler& scheduler() { return scheduler_; }

  // What its devices run. Id, step and group are the scheduler's.
  virtual Invocation invocation_of(TaskId id, const TaskSpec& task, GroupId group) = 0;
  // Before the tasks that wait for it are considered. An Error thrown here ends the run, named after the
  // task.
  virtual void on_task_done(TaskId id, const TaskSpec& task, std::span<const InvocationDone> results) = 0;

 private:
  std::string words(TaskId id) const;  // empty for a program without a name: the only one of a run

  TaskScheduler scheduler_;
  InFlight<TaskId>
      in_flight_;  // by the invocation's id: ids increase on each device, tasks may overtake each other
};

}  // namespace hyperrun::control
