#include "runtime/tasks/task_driver.h"

#include <fmt/core.h>

#include <utility>

#include "runtime/base/joined.h"

namespace hyperrun::tasks {

std::vector<std::vector<std::int32_t>> TaskDriver::device_groups() {
  std::vector<std::vector<std::int32_t>> all;
  for (GroupId g = 1; g < scheduler_.groups().size(); ++g) {
    const std::span<const std::int32_t> ranks = scheduler_.groups().ranks(g);
    all.emplace_back(ranks.begin(), ranks.end());
  }
  return all;
}

std::optional<Invocation> TaskDriver::next_within(const Dispatcher& dispatcher) {
  const std::optional<Issue> issue = scheduler_.next();
  if (!issue) {
    if (scheduler_.stuck()) throw scheduler_.deadlock();
    return std::nullopt;
  }
  // The scheduler frees a device's slot when the whole group is done, the dispatcher earlier.
  HR_CHECK(dispatcher.has_room(issue->group), "the scheduler's window is above the controller's");
  const TaskSpec& task = scheduler_.task(issue->task);
  Invocation invocation = invocation_of(issue->task, task, issue->group);
  invocation.id = in_flight_.add(issue->task);
  invocation.step = task.step;
  invocation.group = issue->group;
  issuing(invocation, scheduler_.groups().ranks(issue->group));
  return invocation;
}

void TaskDriver::on_done(const Invocation& invocation, std::span<const InvocationDone> results) {
  const TaskId id = in_flight_.at(invocation.id);
  try {
    on_task_done(id, scheduler_.task(id), results);
  } catch (const Error& e) {
    std::vector<std::string> places;
    for (const std::string& place : {describe_task(id), e.place()})
      if (!place.empty()) places.push_back(place);
    throw Error(e).at(joined(places));
  }
  scheduler_.done(id);
  in_flight_.finish(invocation.id);
}

std::string TaskDriver::describe_task(TaskId id) const {
  const TaskSpec& task = scheduler_.task(id);
  if (scheduler_.program(task.program).name.empty()) return "";
  return fmt::format("program {}, task {}", scheduler_.program(task.program).name, task.step);
}

std::string TaskDriver::describe(const Invocation& invocation) const {
  return describe_task(in_flight_.at(invocation.id));
}

}  // namespace hyperrun::tasks
