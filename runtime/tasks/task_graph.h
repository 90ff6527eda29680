// Tasks, the futures between them, and the programs' queues of outputs: what may go by its inputs and by
// back-pressure. Where and in which order it goes is a TaskOrder's matter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/device_groups.h"
#include "runtime/tasks/in_flight.h"
#include "runtime/tasks/task.h"

namespace hyperrun::control {

class TaskGraph {
 public:
  struct Task {
    TaskSpec spec;
    GroupId group = -1;         // who runs it, once issued
    std::int32_t unissued = 0;  // inputs whose producer is not issued
    std::int32_t undone = 0;    // inputs that are not there
    // Of the order's own.
    std::int32_t queue = -1, heads = 0;
    std::int64_t turn = -1;

    bool issued() const { return group >= 0; }
  };

  // producers_first: a task's inputs have their producers when it is submitted.
  explicit TaskGraph(bool producers_first) : producers_first_(producers_first) {}

  ProgramIndex add_program(TaskProgram program);
  FutureId add_future(FutureSpec spec);
  // Throws kControl, naming what is wrong and changing nothing: a program or future that is not known (any
  // more), a second producer, more consumers than uses, outputs that the program's queue could never hold, a
  // circle of tasks that wait for each other, a producer that is missing.
  TaskId submit(TaskSpec spec);

  std::int32_t programs() const { return static_cast<std::int32_t>(programs_.size()); }
  const TaskProgram& program(ProgramIndex p) const { return programs_[static_cast<std::size_t>(p)].spec; }
  Task& task(TaskId id) { return tasks_.at(id); }
  const Task& task(TaskId id) const { return tasks_.at(id); }
  bool waits(TaskId id) const { return tasks_.has(id) && !task(id).issued(); }
  std::int64_t waiting() const { return waiting_; }
  std::int64_t in_flight() const { return in_flight_; }

  bool inputs_done(TaskId id) const { return task(id).undone == 0; }
  // A device does one thing after the other: on these devices each input that is not there yet is certain to
  // come before, as its producer has been issued to all of them.
  bool inputs_come_before(TaskId id, GroupId group, const DeviceGroups& groups) const;
  // Who makes the first of its inputs that are not there; -1: there is none, or it is not issued.
  GroupId producing_group(TaskId id) const;
  // The program's queue has room for its outputs.
  bool fits(TaskId id) const;

  // Returns whose inputs have all been issued by that; valid until the next call of issue or done.
  std::span<const TaskId> issue(TaskId id, GroupId group);

  struct Done {
    std::span<const TaskId> ready;           // whose inputs are all there by that
    std::span<const ProgramIndex> released;  // whose queues have more room by that
  };
  Done done(TaskId id);  // valid until the next call of issue or done

  std::string name_of(TaskId id) const;         // "reward 17"
  std::string why_inputs(TaskId id) const;      // of a task whose inputs are not there, in words
  std::string why_queue(ProgramIndex p) const;  // of a queue that is full
  std::vector<ProgramProgress> progress() const;
  std::vector<TaskId> waiting_tasks(std::size_t most) const;  // the oldest

 private:
  struct Program {
    TaskProgram spec;
    ProgramProgress progress;
  };
  struct Future {
    FutureSpec spec;
    TaskId producer = -1;
    ProgramIndex program = -1;  // the producer's, which may be forgotten
    bool issued = false, done = false;
    std::int32_t used = 0;
    std::vector<TaskId> consumers;  // submitted
  };

  void check(const TaskSpec& spec) const;
  void check_output(const TaskSpec& spec, FutureId id) const;
  void check_input(const TaskSpec& spec, FutureId id) const;
  void check_circle(const TaskSpec& spec) const;
  void consume(const Task& task);
  void release(FutureId id);  // used up
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

}  // namespace hyperrun::control
