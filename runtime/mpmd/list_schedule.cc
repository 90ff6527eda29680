#include "runtime/mpmd/list_schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }
std::size_t at(std::int32_t task) { return static_cast<std::size_t>(task); }

class ListScheduler {
 public:
  explicit ListScheduler(std::span<const StreamTask> tasks)
      : tasks_(tasks), missing_(tasks.size()), next_(tasks.size()) {
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      missing_[t] = static_cast<std::int32_t>(tasks[t].after.size());
      for (const std::int32_t before : tasks[t].after)
        next_[at(before)].push_back(static_cast<std::int32_t>(t));
      if (missing_[t] == 0) make_ready(static_cast<std::int32_t>(t));
    }
  }

  std::vector<std::int32_t> run() {
    begin_what_can(0);
    while (!running_.empty()) {
      const std::int64_t now = running_.top().first;
      for (; !running_.empty() && running_.top().first == now; running_.pop()) end(running_.top().second);
      begin_what_can(now);
    }
    HR_CHECK(order_.size() == tasks_.size(), "tasks wait for each other");
    return std::move(order_);
  }

 private:
  void make_ready(std::int32_t t) {
    ready_[at(tasks_[at(t)].stream)].emplace(-tasks_[at(t)].urgency.value, t);
  }

  void begin_what_can(std::int64_t now) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (busy_[s] || ready_[s].empty()) continue;
      const std::int32_t t = ready_[s].begin()->second;
      ready_[s].erase(ready_[s].begin());
      busy_[s] = true;
      order_.push_back(t);
      running_.emplace(now + tasks_[at(t)].lasts.value, t);
    }
  }

  void end(std::int32_t t) {
    busy_[at(tasks_[at(t)].stream)] = false;
    for (const std::int32_t next : next_[at(t)])
      if (--missing_[at(next)] == 0) make_ready(next);
  }

  using Ending = std::pair<std::int64_t, std::int32_t>;  // ns, task

  std::span<const StreamTask> tasks_;
  std::vector<std::int32_t> missing_;            // by task: tasks that it still waits for
  std::vector<std::vector<std::int32_t>> next_;  // by task: tasks that wait for it
  // Ready tasks of each stream, the most urgent first.
  std::array<std::set<std::pair<std::int64_t, std::int32_t>>, kStreams> ready_;
  std::array<bool, kStreams> busy_{};
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running_;
  std::vector<std::int32_t> order_;
};

}  // namespace

void find_urgencies(std::span<StreamTask> tasks) {
  for (StreamTask& t : tasks) t.urgency = t.lasts;
  for (std::size_t t = tasks.size(); t-- > 0;)
    for (const std::int32_t before : tasks[t].after) {
      StreamTask& b = tasks[at(before)];
      b.urgency = std::max(b.urgency, b.lasts + tasks[t].urgency);
    }
}

std::vector<std::int32_t> list_schedule(std::span<const StreamTask> tasks) {
  return ListScheduler(tasks).run();
}

Nanos makespan(std::span<const StreamTask> tasks, std::span<const std::int32_t> order) {
  std::vector<Nanos> ends(tasks.size());
  std::array<Nanos, kStreams> free{};
  Nanos length{};
  for (const std::int32_t t : order) {
    const StreamTask& task = tasks[at(t)];
    Nanos begin = free[at(task.stream)];
    for (const std::int32_t before : task.after) begin = std::max(begin, ends[at(before)]);
    ends[at(t)] = free[at(task.stream)] = begin + task.lasts;
    length = std::max(length, ends[at(t)]);
  }
  return length;
}

}  // namespace hyperrun
