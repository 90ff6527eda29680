// Every device runs its tasks in the order in which they were submitted, whatever is ready when. A task that
// may go to several groups goes to that with the fewest tasks so far. So who runs what after what is a
// function of what was submitted alone. A program with a limited queue fills it in that order, too, so
// whether queues end in a deadlock is not a matter of timing either. Priorities and shares do not count.
#pragma once

#include <deque>
#include <vector>

#include "runtime/tasks/device_slots.h"
#include "runtime/tasks/task_graph.h"
#include "runtime/tasks/task_order.h"

namespace hyperrun::control {

class StaticOrder : public TaskOrder {
 public:
  // places: the groups of each. All outlive this; places may grow.
  StaticOrder(TaskGraph& graph, const DeviceSlots& slots, const std::vector<std::vector<GroupId>>& places,
              bool ahead);

  void submitted(TaskId task) override;
  void offered(TaskId task) override { look_at(task); }
  std::optional<Issue> pick() override;
  void issued(const Issue& issue) override;
  void freed(GroupId group) override;
  void released(ProgramIndex program) override;
  std::string why(TaskId task) const override;

 private:
  template <class Visit>
  void for_lines_of(const TaskGraph::Task& task, Visit visit);
  bool is_first(TaskId task) const;  // in all its lines
  bool queues(const TaskGraph::Task& task) const;
  void look_at(TaskId task);

  TaskGraph& graph_;
  const DeviceSlots& slots_;
  const std::vector<std::vector<GroupId>>& places_;
  bool ahead_;
  std::vector<std::deque<TaskId>> lines_;  // by rank, then by program with a limited queue: not issued yet
  std::vector<std::int64_t> assigned_;     // by group
  std::deque<TaskId> look_;                // first in all their lines, perhaps able to go
  std::vector<std::vector<TaskId>> full_;  // by program: those that the queue keeps
};

}  // namespace hyperrun::control
