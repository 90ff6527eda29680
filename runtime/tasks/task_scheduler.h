// The scheduler of tasks of several programs on groups of devices. It chooses the next task and its group. It
// does no input or output and has no clock: its decisions follow from its calls alone, in their order.
//
// A task may be issued before its inputs exist if their producers have been issued to the same devices: a
// device runs its tasks in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/device_slots.h"
#include "runtime/tasks/task_graph.h"
#include "runtime/tasks/task_order.h"

namespace hyperrun::tasks {

enum class Scheduling : std::uint8_t {
  kStatic,   // each device's order follows from the order of submission alone (static_order.h)
  kDynamic,  // by readiness, priority, shares and load (fair_order.h)
};

class TaskScheduler {
 public:
  struct Options {
    Scheduling scheduling = Scheduling::kDynamic;
    std::int32_t window = 2;  // most tasks of a device; at most ControllerOptions::window
    bool ahead = true;        // a task may be issued before its inputs exist
  };

  TaskScheduler(DeviceGroups groups, Options options);
  ~TaskScheduler();
  TaskScheduler(const TaskScheduler&) = delete;
  TaskScheduler& operator=(const TaskScheduler&) = delete;

  const DeviceGroups& groups() const { return groups_; }
  ProgramIndex add_program(TaskProgram program) { return graph_.add_program(std::move(program)); }
  // Declares a place: any of these groups, equal in size, may run its tasks. It must be called before the
  // first task is submitted. Throws kControl if that does not hold or a group does not exist.
  PlaceId add_place(std::vector<GroupId> groups);
  FutureId add_future(FutureSpec spec) { return graph_.add_future(std::move(spec)); }
  // Submits a task. Throws kControl, see TaskGraph::submit. Dynamic scheduling accepts consumers before their
  // producers, static scheduling does not.
  TaskId submit(TaskSpec spec);

  // Returns the next task to issue now; nullopt: none until more is submitted or done.
  std::optional<Issue> next();
  // Must be called when all devices of the task's group have reported it.
  void done(TaskId task);

  std::int64_t waiting() const { return graph_.waiting(); }
  std::int64_t in_flight() const { return graph_.in_flight(); }
  // True if nothing is in flight and the waiting tasks wait for ever, unless more is submitted. Valid after
  // next() returned nullopt.
  bool stuck() const { return in_flight() == 0 && waiting() > 0; }
  // The error that says which tasks wait for what.
  Error deadlock() const;

  const TaskSpec& task(TaskId id) const { return graph_.task(id).spec; }  // valid until the task is done
  const TaskProgram& program(ProgramIndex p) const { return graph_.program(p); }
  std::string name_of(TaskId id) const { return graph_.name_of(id); }
  std::vector<ProgramProgress> progress() const { return graph_.progress(); }

 private:
  void start();

  DeviceGroups groups_;
  Options options_;
  TaskGraph graph_;
  DeviceSlots slots_;
  std::vector<std::vector<GroupId>> places_;
  std::unique_ptr<TaskOrder> order_;  // made with the first task
};

}  // namespace hyperrun::tasks
