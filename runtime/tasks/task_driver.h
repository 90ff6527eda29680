// A driver whose invocations are the tasks of a TaskScheduler. A derived class submits tasks, first in
// on_ready, later in on_task_done, and makes each task's invocation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tasks/driver.h"
#include "runtime/tasks/in_flight.h"
#include "runtime/tasks/task_scheduler.h"

namespace hyperrun::tasks {

class TaskDriver : public Driver {
 public:
  std::vector<std::vector<std::int32_t>> device_groups() final;
  std::optional<Invocation> next_invocation() final { return std::nullopt; }  // next_within answers instead
  // Throws the scheduler's deadlock if nothing is in flight and tasks wait.
  std::optional<Invocation> next_within(const Dispatcher& dispatcher) final;
  void on_done(const Invocation& invocation, std::span<const InvocationDone> results) final;
  std::string describe(const Invocation& invocation) const final;  // "program reward, task 17"

  const TaskScheduler& tasks() const { return scheduler_; }

 protected:
  // The window of ControllerOptions must be at least that of the scheduler.
  TaskDriver(DeviceGroups groups, TaskScheduler::Options options) : scheduler_(std::move(groups), options) {}
  TaskScheduler& scheduler() { return scheduler_; }

  // Makes the invocation of a task. The scheduler sets its id, step and group.
  virtual Invocation invocation_of(TaskId id, const TaskSpec& task, GroupId group) = 0;
  // Called with each invocation as it is issued to the devices.
  virtual void issuing(Invocation& invocation, std::span<const std::int32_t> devices) {
    static_cast<void>(invocation), static_cast<void>(devices);
  }
  // Called when a task is done, before the tasks that wait for it are considered. An Error thrown here ends
  // the run, named after the task.
  virtual void on_task_done(TaskId id, const TaskSpec& task, std::span<const InvocationDone> results) = 0;

 private:
  std::string describe_task(TaskId id) const;  // empty for a program without a name: the only one of a run

  TaskScheduler scheduler_;
  InFlight<TaskId>
      in_flight_;  // by the invocation's id: ids increase on each device, and tasks may overtake each other
};

}  // namespace hyperrun::tasks
