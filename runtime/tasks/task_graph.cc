#include "runtime/tasks/task_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hyperrun::tasks {
namespace {

constexpr std::size_t kListed = 4;  // futures named in the text of a full queue

Error refusal(const std::string& task, const std::string& why) {
  return Error(Code::kControl, why).at("task " + task);
}

}  // namespace

ProgramIndex TaskGraph::add_program(TaskProgram program) {
  if (program.share <= 0 || program.queue < 0 || program.queue_bytes < Bytes(0))
    throw Error(Code::kControl, "a program's share must be positive, its queue not negative")
        .at("program " + program.name);
  ProgramProgress progress;
  progress.name = program.name;
  programs_.push_back({std::move(program), std::move(progress)});
  return programs() - 1;
}

FutureId TaskGraph::add_future(FutureSpec spec) {
  Future future;
  future.spec = std::move(spec);
  return futures_.add(std::move(future));
}

void TaskGraph::check(const TaskSpec& spec) const {
  if (spec.program < 0 || spec.program >= programs())
    throw Error(Code::kControl, "there is no program " + std::to_string(spec.program));
  for (const FutureId id : spec.outputs) check_output(spec, id);
  for (const FutureId id : spec.inputs) check_input(spec, id);
  const TaskProgram& p = program(spec.program);
  Bytes bytes{};
  for (const FutureId id : spec.outputs) bytes += futures_.at(id).spec.bytes;
  if ((p.queue > 0 && std::ssize(spec.outputs) > p.queue) ||
      (p.queue_bytes > Bytes(0) && bytes > p.queue_bytes))
    throw refusal(name_of(spec), fmt::format("its {} outputs ({}) never fit into the queue of its program",
                                             spec.outputs.size(), to_string(bytes)))
        .fix("a longer queue for program " + p.name);
  check_circle(spec);
}

void TaskGraph::check_output(const TaskSpec& spec, FutureId id) const {
  if (!futures_.has(id)) throw refusal(name_of(spec), fmt::format("its output {} is no future", id));
  if (futures_.at(id).producer >= 0 || std::ranges::count(spec.outputs, id) > 1)
    throw refusal(name_of(spec), quoted(id) + " has a producer already");
}

void TaskGraph::check_input(const TaskSpec& spec, FutureId id) const {
  if (!futures_.has(id))
    throw refusal(name_of(spec), fmt::format("its input {} is no future, or one that is used up", id));
  const Future& future = futures_.at(id);
  if (std::ssize(future.consumers) + std::ranges::count(spec.inputs, id) > future.spec.uses)
    throw refusal(name_of(spec),
                  fmt::format("{} has more consumers than its {} uses", quoted(id), future.spec.uses));
  if (producers_first_ && future.producer < 0 && std::ranges::count(spec.outputs, id) == 0)
    throw refusal(name_of(spec), "its input " + quoted(id) + " has no producer yet")
        .fix("submit tasks in an order in which they could run");
}

// Follows the consumers of the task's outputs, back to one of its inputs.
void TaskGraph::check_circle(const TaskSpec& spec) const {
  struct Step {
    FutureId future;
    std::string path;
  };
  std::vector<Step> open;
  for (const FutureId id : spec.outputs) open.push_back({id, name_of(spec)});
  std::set<TaskId> seen;
  while (!open.empty()) {
    const Step step = std::move(open.back());
    open.pop_back();
    if (std::ranges::count(spec.inputs, step.future) > 0)
      throw refusal(name_of(spec), "tasks wait for each other in a circle: " + step.path + " makes " +
                                       quoted(step.future) + " for " + name_of(spec));
    for (const TaskId consumer : futures_.at(step.future).consumers) {
      if (!seen.insert(consumer).second) continue;
      for (const FutureId next : task(consumer).spec.outputs)
        open.push_back(
            {next, step.path + " makes " + quoted(step.future) + " for " + name_of(consumer) + ", which"});
    }
  }
}

TaskId TaskGraph::submit(TaskSpec spec) {
  check(spec);
  Task task;
  task.spec = std::move(spec);
  const TaskId id = tasks_.next();
  for (const FutureId output : task.spec.outputs) {
    futures_.at(output).producer = id;
    futures_.at(output).program = task.spec.program;
  }
  for (const FutureId input : task.spec.inputs) {
    Future& future = futures_.at(input);
    future.consumers.push_back(id);
    task.unissued += future.issued ? 0 : 1;
    task.undone += future.done ? 0 : 1;
  }
  ++programs_[static_cast<std::size_t>(task.spec.program)].progress.submitted;
  ++waiting_;
  return tasks_.add(std::move(task));
}

bool TaskGraph::inputs_come_before(TaskId id, GroupId group, const DeviceGroups& groups) const {
  return std::ranges::all_of(task(id).spec.inputs, [&](FutureId input) {
    const Future& future = futures_.at(input);
    return future.done || (future.issued && groups.contains(task(future.producer).group, group));
  });
}

GroupId TaskGraph::producing_group(TaskId id) const {
  for (const FutureId input : task(id).spec.inputs)
    if (const Future& future = futures_.at(input); !future.done)
      return future.issued ? task(future.producer).group : -1;
  return -1;
}

bool TaskGraph::fits(TaskId id) const {
  const TaskSpec& spec = task(id).spec;
  const auto& [limits, now] = programs_[static_cast<std::size_t>(spec.program)];
  if (limits.queue > 0 && now.queued + std::ssize(spec.outputs) > limits.queue) return false;
  if (limits.queue_bytes == Bytes(0)) return true;
  Bytes bytes = now.queued_bytes;
  for (const FutureId output : spec.outputs) bytes += futures_.at(output).spec.bytes;
  return bytes <= limits.queue_bytes;
}

std::span<const TaskId> TaskGraph::issue(TaskId id, GroupId group) {
  Task& t = task(id);
  HR_CHECK(!t.issued() && group >= 0);
  t.group = group;
  --waiting_;
  ++in_flight_;
  ProgramProgress& progress = programs_[static_cast<std::size_t>(t.spec.program)].progress;
  ++progress.issued;
  changed_.clear();
  for (const FutureId output : t.spec.outputs) {
    Future& future = futures_.at(output);
    future.issued = true;
    ++progress.queued;
    progress.queued_bytes += future.spec.bytes;
    for (const TaskId consumer : future.consumers)
      if (--task(consumer).unissued == 0) changed_.push_back(consumer);
  }
  progress.most_queued = std::max(progress.most_queued, progress.queued);
  return changed_;
}

TaskGraph::Done TaskGraph::done(TaskId id) {
  HR_CHECK(tasks_.has(id) && task(id).issued(), "a task is done that is not in flight");
  changed_.clear();
  released_.clear();
  const Task& t = task(id);
  ++programs_[static_cast<std::size_t>(t.spec.program)].progress.done;
  for (const FutureId output : t.spec.outputs) {
    Future& future = futures_.at(output);
    future.done = true;
    // A consumer that went ahead, on a part of the devices, may be done already.
    for (const TaskId consumer : future.consumers)
      if (tasks_.has(consumer) && --task(consumer).undone == 0) changed_.push_back(consumer);
    if (future.used == future.spec.uses) release(output);
  }
  consume(t);
  --in_flight_;
  tasks_.finish(id);
  return {changed_, released_};
}

void TaskGraph::consume(const Task& task) {
  for (const FutureId input : task.spec.inputs) {
    Future& future = futures_.at(input);
    if (++future.used == future.spec.uses && future.done) release(input);
  }
}

void TaskGraph::release(FutureId id) {
  const Future& future = futures_.at(id);
  ProgramProgress& progress = programs_[static_cast<std::size_t>(future.program)].progress;
  --progress.queued;
  progress.queued_bytes -= future.spec.bytes;
  if (std::ranges::count(released_, future.program) == 0) released_.push_back(future.program);
  futures_.finish(id);
}

std::string TaskGraph::name_of(const TaskSpec& spec) const {
  return fmt::format("{} {}", program(spec.program).name, spec.step);
}

std::string TaskGraph::name_of(TaskId id) const { return name_of(task(id).spec); }

std::string TaskGraph::quoted(FutureId id) const {
  const std::string& name = futures_.at(id).spec.name;
  return name.empty() ? fmt::format("\"future {}\"", id) : fmt::format("\"{}\"", name);
}

std::string TaskGraph::why_inputs(TaskId id) const {
  std::string text;
  for (const FutureId input : task(id).spec.inputs) {
    const Future& future = futures_.at(input);
    if (future.done) continue;
    text += (text.empty() ? "waits for " : ", ") + quoted(input);
    text += future.producer < 0 ? ", which no task makes" : " of " + name_of(future.producer);
  }
  return text;
}

std::string TaskGraph::why_queue(ProgramIndex p) const {
  const auto& [limits, now] = programs_[static_cast<std::size_t>(p)];
  std::string text = fmt::format("the queue of {} has room for {} outputs", limits.name, limits.queue);
  if (limits.queue_bytes > Bytes(0)) text += ", " + to_string(limits.queue_bytes);
  text += fmt::format(", and {} ({}) are not used yet", now.queued, to_string(now.queued_bytes));
  std::size_t listed = 0;
  for (FutureId id = futures_.first(); id < futures_.next() && listed < kListed; ++id) {
    if (!futures_.has(id) || futures_.at(id).program != p || !futures_.at(id).issued) continue;
    const Future& future = futures_.at(id);
    text += (listed++ == 0 ? ": " : ", ") + quoted(id);
    const auto consumer = std::ranges::find_if(future.consumers, [this](TaskId c) { return waits(c); });
    text +=
        consumer == future.consumers.end() ? " (no task asks for it)" : " (for " + name_of(*consumer) + ")";
  }
  return text;
}

std::vector<ProgramProgress> TaskGraph::progress() const {
  std::vector<ProgramProgress> all;
  for (const Program& p : programs_) all.push_back(p.progress);
  for (TaskId id = tasks_.first(); id < tasks_.next(); ++id) {
    if (!waits(id)) continue;
    ProgramProgress& p = all[static_cast<std::size_t>(task(id).spec.program)];
    ++(!inputs_done(id) ? p.wait_for_input : !fits(id) ? p.wait_for_queue : p.wait_for_devices);
  }
  return all;
}

std::vector<TaskId> TaskGraph::waiting_tasks(std::size_t most) const {
  std::vector<TaskId> waiting;
  for (TaskId id = tasks_.first(); id < tasks_.next() && waiting.size() < most; ++id)
    if (waits(id)) waiting.push_back(id);
  return waiting;
}

}  // namespace hyperrun::tasks
