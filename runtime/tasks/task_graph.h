// The graph of tasks, the futures between them, and the programs' queues of outputs. It says which tasks may
// go by their inputs and by back-pressure. A TaskOrder chooses the group and the order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/device_groups.h"
#include "runtime/tasks/in_flight.h"
#include "runtime/tasks/task.h"

namespace hyperrun::tasks {

class TaskGraph {
 public:
  struct Task {
    TaskSpec spec;
    GroupId group = -1;         // group that runs it, once issued
    std::int32_t unissued = 0;  // number of inputs whose producer is not issued
    std::int32_t undone = 0;    // number of inputs that do not exist yet
    // Fields for the TaskOrder.
    std::int32_t queue = -1, heads = 0;
    std::int64_t turn = -1;

    bool issued() const { return group >= 0; }
  };

  // `producers_first`: each input must have its producer when the task is submitted.
  explicit TaskGraph(bool producers_first) : producers_first_(producers_first) {}

  ProgramIndex add_program(TaskProgram program);
  FutureId add_future(FutureSpec spec);
  // Submits a task. Throws kControl, naming the fault and changing nothing, for a program or future that is
  // not known (any more), a second producer, more consumers than uses, outputs that the program's queue could
  // never hold, a circle of tasks that wait for each other, or a missing producer.
  TaskId submit(TaskSpec spec);

  std::int32_t programs() const { return static_cast<std::int32_t>(programs_.size()); }
  const TaskProgram& program(ProgramIndex p) const { return programs_[static_cast<std::size_t>(p)].spec; }
  Task& task(TaskId id) { return tasks_.at(id); }
  const Task& task(TaskId id) const { return tasks_.at(id); }
  bool waits(TaskId id) const { return tasks_.has(id) && !task(id).issued(); }
  std::int64_t waiting() const { return waiting_; }
  std::int64_t in_flight() const { return in_flight_; }

  bool inputs_done(TaskId id) const { return task(id).undone == 0; }
  // True if, on these devices, each missing input is certain to exist before the task runs. A device runs its
  // tasks in order, and the producers have been issued to all of these devices.
  bool inputs_come_before(TaskId id, GroupId group, const DeviceGroups& groups) const;
  // The group that makes the first missing input; -1: none is missing, or its producer is not issued.
  GroupId producing_group(TaskId id) const;
  // True if the program's queue has room for the task's outputs.
  bool fits(TaskId id) const;

  // Issues a task. Returns the tasks whose inputs have now all been issued; valid until the next call of
  // issue or done.
  std::span<const TaskId> issue(TaskId id, GroupId group);

  struct Done {
    std::span<const TaskId> ready;           // tasks whose inputs now all exist
    std::span<const ProgramIndex> released;  // programs whose queues now have more room
  };
  Done done(TaskId id);  // valid until the next call of issue or done

  std::string name_of(TaskId id) const;         // "reward 17"
  std::string why_inputs(TaskId id) const;      // why a task waits for its inputs, as text
  std::string why_queue(ProgramIndex p) const;  // why a queue is full, as text
  std::vector<ProgramProgress> progress() const;
  std::vector<TaskId> waiting_tasks(std::size_t most) const;  // the oldest waiting tasks

 private:
  struct Program {
    TaskProgram spec;
    ProgramProgress progress;
  };
  struct Future {
    FutureSpec spec;
    TaskId producer = -1;
    ProgramIndex program = -1;  // the producer's program; the producer may be forgotten
    bool issued = false, done = false;
    std::int32_t used = 0;
    std::vector<TaskId> consumers;  // submitted consumers
  };

  void check(const TaskSpec& spec) const;
  void check_output(const TaskSpec& spec, FutureId id) const;
  void check_input(const TaskSpec& spec, FutureId id) const;
  void check_circle(const TaskSpec& spec) const;
  void consume(const Task& task);
  void release(FutureId id);  // the future is used up
  std::string name_of(const TaskSpec& spec) const;
  std::string quoted(FutureId id) const;

  bool producers_first_;
  std::vector<Program> programs_;
  InFlight<Future> futures_;
  InFlight<Task> tasks_;
  std::int64_t waiting_ = 0, in_flight_ = 0;
  std::vector<TaskId> changed_;         // scratch
  std::vector<ProgramIndex> released_;  // scratch
};

}  // namespace hyperrun::tasks
