// The policy of a TaskScheduler: it chooses the next task and its group. The scheduler tells it of every
// change.
#pragma once

#include <optional>
#include <string>

#include "runtime/tasks/task.h"

namespace hyperrun::tasks {

class TaskOrder {
 public:
  virtual ~TaskOrder() = default;

  virtual void submitted(TaskId task) = 0;
  // Called when a task's inputs all exist; the first time, they may all be issued only. Called at least once
  // for each task.
  virtual void offered(TaskId task) = 0;
  // Chooses a task, before it is issued to the graph and takes its devices' slots. Its group and its
  // program's queue have room. Its inputs exist, or certainly exist before it runs.
  virtual std::optional<Issue> pick() = 0;
  virtual void issued(const Issue& issue) = 0;      // called after the task is issued
  virtual void freed(GroupId group) = 0;            // the group's devices have one task less
  virtual void released(ProgramIndex program) = 0;  // the program's queue has more room
  // Says what a task waits behind that neither inputs nor queue hold back.
  virtual std::string why(TaskId task) const = 0;
};

}  // namespace hyperrun::tasks
