#include "runtime/tasks/task_scheduler.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "runtime/tasks/fair_order.h"
#include "runtime/tasks/static_order.h"

namespace hyperrun::tasks {
namespace {

constexpr std::size_t kListed = 8;  // tasks named of those that wait for ever

}  // namespace

TaskScheduler::TaskScheduler(DeviceGroups groups, Options options)
    : groups_(std::move(groups)),
      options_(options),
      graph_(options.scheduling == Scheduling::kStatic),
      slots_(groups_, options.window) {}

TaskScheduler::~TaskScheduler() = default;

PlaceId TaskScheduler::add_place(std::vector<GroupId> groups) {
  HR_CHECK(order_ == nullptr, "a place comes before the tasks");
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kControl, fmt::format("place {} {}", places_.size(), why));
  };
  if (groups.empty()) refuse("has no group");
  for (const GroupId g : groups)
    if (!groups_.known(g)) refuse(fmt::format("has group {}, which does not exist", g));
  if (std::set(groups.begin(), groups.end()).size() != groups.size()) refuse("has a group twice");
  for (const GroupId g : groups)
    if (groups_.ranks(g).size() != groups_.ranks(groups.front()).size())
      refuse(fmt::format("has groups of different sizes: {} and {}", groups.front(), g));
  places_.push_back(std::move(groups));
  return static_cast<PlaceId>(places_.size() - 1);
}

void TaskScheduler::start() {
  if (options_.scheduling == Scheduling::kStatic)
    order_ = std::make_unique<StaticOrder>(graph_, slots_, places_, options_.ahead);
  else
    order_ = std::make_unique<FairOrder>(graph_, slots_, places_, options_.ahead);
}

TaskId TaskScheduler::submit(TaskSpec spec) {
  if (spec.place < 0 || spec.place >= std::ssize(places_))
    throw Error(Code::kControl, fmt::format("a task is for place {}, which does not exist", spec.place));
  if (!order_) start();
  const TaskId id = graph_.submit(std::move(spec));
  order_->submitted(id);
  if (graph_.task(id).unissued == 0) order_->offered(id);
  return id;
}

std::optional<Issue> TaskScheduler::next() {
  if (!order_) return std::nullopt;
  const std::optional<Issue> issue = order_->pick();
  if (!issue) return std::nullopt;
  slots_.take(issue->group);
  const std::span<const TaskId> offered = graph_.issue(issue->task, issue->group);
  order_->issued(*issue);
  for (const TaskId task : offered) order_->offered(task);
  return issue;
}

void TaskScheduler::done(TaskId task) {
  const GroupId group = graph_.task(task).group;
  const TaskGraph::Done changed = graph_.done(task);
  slots_.free(group);
  for (const TaskId ready : changed.ready) order_->offered(ready);
  for (const ProgramIndex program : changed.released) order_->released(program);
  order_->freed(group);
}

Error TaskScheduler::deadlock() const {
  std::string text = std::to_string(waiting()) + " tasks wait, and nothing runs that they could wait for:";
  for (const TaskId id : graph_.waiting_tasks(kListed)) {
    text += "\n  " + graph_.name_of(id) + " ";
    if (!graph_.inputs_done(id))
      text += graph_.why_inputs(id);
    else if (!graph_.fits(id))
      text += "waits for room: " + graph_.why_queue(graph_.task(id).spec.program);
    else
      text += order_->why(id);
  }
  if (waiting() > static_cast<std::int64_t>(kListed))
    text += fmt::format("\n  and {} more", waiting() - static_cast<std::int64_t>(kListed));
  return Error(Code::kControl, text)
      .fix("submit what makes the missing inputs, or give the programs named longer queues");
}

}  // namespace hyperrun::tasks
