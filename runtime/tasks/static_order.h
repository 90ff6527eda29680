// The static order: every device runs its tasks in the order of submission, whatever is ready when. A task
// with several possible groups goes to the one with the fewest tasks so far. So the order of tasks on each
// device is a function of the submissions alone. A program fills its limited queue in that order too, so a
// deadlock by queues does not depend on timing either. Priorities and shares do not count.
#pragma once

#include <deque>
#include <vector>

#include "runtime/tasks/device_slots.h"
#include "runtime/tasks/task_graph.h"
#include "runtime/tasks/task_order.h"

namespace hyperrun::tasks {

class StaticOrder : public TaskOrder {
 public:
  // `places` are the groups of each place. All arguments outlive this; places may grow.
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
  bool is_first(TaskId task) const;  // true if it is the first in all its lines
  bool queues(const TaskGraph::Task& task) const;
  void look_at(TaskId task);

  TaskGraph& graph_;
  const DeviceSlots& slots_;
  const std::vector<std::vector<GroupId>>& places_;
  bool ahead_;
  std::vector<std::deque<TaskId>> lines_;  // unissued tasks: by rank, then by program with a limited queue
  std::vector<std::int64_t> assigned_;     // by group
  std::deque<TaskId> look_;                // tasks that are first in all their lines and may be able to go
  std::vector<std::vector<TaskId>> full_;  // by program: tasks that wait for room in its queue
};

}  // namespace hyperrun::tasks
