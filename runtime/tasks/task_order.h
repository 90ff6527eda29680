// Which task goes next, and to which group: the policy of a TaskScheduler, which tells it what has changed.
#pragma once

#include <optional>
#include <string>

#include "runtime/tasks/task.h"

namespace hyperrun::control {

class TaskOrder {
 public:
  virtual ~TaskOrder() = default;

  virtual void submitted(TaskId task) = 0;
  // Its inputs are all there, or, the first time, may be all issued only. At least once for each task.
  virtual void offered(TaskId task) = 0;
  // Before it is issued to the graph and its devices' slots are taken. The group has room, the program's
  // queue too, and the inputs are there or come before.
  virtual std::optional<Issue> pick() = 0;
  virtual void issued(const Issue& issue) = 0;      // and after
  virtual void freed(GroupId group) = 0;            // its devices have one task less
  virtual void released(ProgramIndex program) = 0;  // its queue has more room
  // Of a task that neither inputs nor queue keep: what it is behind.
  virtual std::string why(TaskId task) const = 0;
};

}  // namespace hyperrun::control
