// Tasks of several programs on groups of devices: which goes next, and where. No input or output, no clock:
// what it decides follows from what it was told, in that order.
//
// A task may be issued before its inputs are there, where its producers have been issued to the same devices
// before: a device does one thing after the other.
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

namespace hyperrun::control {

enum class Scheduling : std::uint8_t {
  kStatic,   // static_order.h: each device's order follows from the order of submission alone
  kDynamic,  // fair_order.h: by readiness, priority, shares and load
};

class TaskScheduler {
 public:
  struct Options {
    Scheduling scheduling = Scheduling::kDynamic;
    std::int32_t window = 2;  // tasks that a device has at most; at most ControllerOptions::window
    bool ahead = true;        // a task may be issued before its inputs are there
  };

  TaskScheduler(DeviceGroups groups, Options options);
  ~TaskScheduler();
  TaskScheduler(const TaskScheduler&) = delete;
  TaskScheduler& operator=(const TaskScheduler&) = delete;

  const DeviceGroups& groups() const { return groups_; }
  ProgramIndex add_program(TaskProgram program) { return graph_.add_program(std::move(program)); }
  // Any of these groups, equal in size. Before the first task is submitted. Throws kControl where that is
  // not so or there is no such group.
  PlaceId add_place(std::vector<GroupId> groups);
  FutureId add_future(FutureSpec spec) { return graph_.add_future(std::move(spec)); }
  // Throws kControl, see TaskGraph::submit. Dynamic scheduling takes consumers before their producers, static
  // scheduling does not.
  TaskId submit(TaskSpec spec);

  // The next task to issue now; none: not before more is submitted or done.
  std::optional<Issue> next();
  // All devices of its group have reported it.
  void done(TaskId task);

  std::int64_t waiting() const { return graph_.waiting(); }
  std::int64_t in_flight() const { return graph_.in_flight(); }
  // Nothing is in flight, and what waits waits for ever, unless more is submitted. After next() gave none.
  bool stuck() const { return in_flight() == 0 && waiting() > 0; }
  // Says which tasks wait for what.
  Error deadlock() const;

  const TaskSpec& task(TaskId id) const { return graph_.task(id).spec; }  // until it is done
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
  std::unique_ptr<TaskOrder> order_;  // once there are tasks
};

}  // namespace hyperrun::control
