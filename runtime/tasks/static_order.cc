#include "runtime/tasks/static_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace hyperrun::tasks {

StaticOrder::StaticOrder(TaskGraph& graph, const DeviceSlots& slots,
                         const std::vector<std::vector<GroupId>>& places, bool ahead)
    : graph_(graph),
      slots_(slots),
      places_(places),
      ahead_(ahead),
      lines_(static_cast<std::size_t>(slots.groups().devices())),
      assigned_(static_cast<std::size_t>(slots.groups().size())) {}

void StaticOrder::submitted(TaskId id) {
  TaskGraph::Task& task = graph_.task(id);
  task.queue =
      *std::ranges::min_element(places_[static_cast<std::size_t>(task.spec.place)], {},
                                [this](GroupId g) { return assigned_[static_cast<std::size_t>(g)]; });
  ++assigned_[static_cast<std::size_t>(task.queue)];
  for_lines_of(task, [&](std::deque<TaskId>& line) {
    if (line.empty()) ++task.heads;
    line.push_back(id);
  });
}

// Visits the lines of the task's devices, and that of its program if its queue is limited.
template <class Visit>
void StaticOrder::for_lines_of(const TaskGraph::Task& task, Visit visit) {
  for (const std::int32_t rank : slots_.groups().ranks(task.queue))
    visit(lines_[static_cast<std::size_t>(rank)]);
  if (!queues(task)) return;
  const auto at = static_cast<std::size_t>(slots_.groups().devices() + task.spec.program);
  if (lines_.size() <= at) lines_.resize(at + 1);
  visit(lines_[at]);
}

bool StaticOrder::queues(const TaskGraph::Task& task) const {
  const TaskProgram& program = graph_.program(task.spec.program);
  return !task.spec.outputs.empty() && (program.queue > 0 || program.queue_bytes > Bytes(0));
}

bool StaticOrder::is_first(TaskId id) const {
  const TaskGraph::Task& task = graph_.task(id);
  return task.heads == std::ssize(slots_.groups().ranks(task.queue)) + (queues(task) ? 1 : 0);
}

void StaticOrder::look_at(TaskId id) {
  if (graph_.waits(id) && is_first(id)) look_.push_back(id);
}

std::optional<Issue> StaticOrder::pick() {
  for (; !look_.empty(); look_.pop_front()) {
    const TaskId id = look_.front();
    if (!graph_.waits(id)) continue;  // the task was listed twice
    const GroupId group = graph_.task(id).queue;
    if (!slots_.has_room(group)) continue;
    if (!graph_.inputs_done(id) && !(ahead_ && graph_.inputs_come_before(id, group, slots_.groups())))
      continue;
    if (!graph_.fits(id)) {
      const auto p = static_cast<std::size_t>(graph_.task(id).spec.program);
      full_.resize(std::max(full_.size(), p + 1));
      full_[p].push_back(id);
      continue;
    }
    look_.pop_front();
    return Issue{id, group};
  }
  return std::nullopt;
}

void StaticOrder::issued(const Issue& issue) {
  for_lines_of(graph_.task(issue.task), [this](std::deque<TaskId>& line) {
    line.pop_front();
    if (line.empty()) return;
    ++graph_.task(line.front()).heads;
    look_at(line.front());
  });
}

void StaticOrder::freed(GroupId group) {
  for (const std::int32_t rank : slots_.groups().ranks(group)) {
    const std::deque<TaskId>& line = lines_[static_cast<std::size_t>(rank)];
    if (!line.empty()) look_at(line.front());
  }
}

void StaticOrder::released(ProgramIndex program) {
  const auto p = static_cast<std::size_t>(program);
  if (p >= full_.size()) return;
  for (const TaskId id : std::exchange(full_[p], {})) look_at(id);
}

std::string StaticOrder::why(TaskId id) const {
  for (const std::int32_t rank : slots_.groups().ranks(graph_.task(id).queue)) {
    const TaskId first = lines_[static_cast<std::size_t>(rank)].front();
    if (first != id) return fmt::format("is behind {} on device {}", graph_.name_of(first), rank);
  }
  return "is behind an earlier task of its program";
}

}  // namespace hyperrun::tasks
