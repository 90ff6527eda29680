// Made-up tasks on made-up devices, for tests of the scheduler. The seed decides the order in which devices
// finish.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "runtime/tasks/task_scheduler.h"

namespace hyperrun::tasks {

// Runs a scheduler's tasks. Each device runs its tasks one after the other, in the order of issue. The next
// device to go on is random, and a task may begin on a device only when its inputs exist.
class TaskWorld {
 public:
  explicit TaskWorld(TaskScheduler& scheduler, std::uint64_t seed)
      : scheduler_(scheduler),
        random_(seed),
        devices_(static_cast<std::size_t>(scheduler.groups().devices())) {}

  // Issues all that may go, and lets some device finish something; false: there was nothing to do.
  bool turn() {
    issue();
    std::vector<std::size_t> able;
    for (std::size_t r = 0; r < devices_.size(); ++r)
      if (!devices_[r].empty()) able.push_back(r);
    if (able.empty()) return false;
    for (;;) {  // devices run in order: the oldest task of all can always go on
      const std::size_t r = able[std::uniform_int_distribution<std::size_t>(0, able.size() - 1)(random_)];
      if (finish(r)) return true;
      std::erase(able, r);
      if (able.empty()) {
        ADD_FAILURE() << "tasks in flight wait for each other";
        return false;
      }
    }
  }

  void run() {
    while (turn()) {
    }
  }

  void issue() {
    while (const auto issue = scheduler_.next()) {
      EXPECT_EQ(issued.count(issue->task), 0u) << "issued twice";
      const TaskSpec spec = scheduler_.task(issue->task);
      issued[issue->task] = {spec, issue->group};
      order.push_back(issue->task);
      if (on_issue) on_issue(issue->task, issue->group);
      Running& running = running_[issue->task];
      for (const std::int32_t rank : scheduler_.groups().ranks(issue->group)) {
        devices_[static_cast<std::size_t>(rank)].push_back(issue->task);
        orders[rank].push_back(issue->task);
        ++running.missing;
      }
      for (const FutureId output : spec.outputs) producer_[output] = issue->task;
    }
  }

  std::function<void(TaskId, GroupId)> on_issue;
  std::function<void(TaskId)> on_done;  // called before the scheduler knows

  struct Issued {
    TaskSpec spec;
    GroupId group;
  };
  std::map<TaskId, Issued> issued;
  std::vector<TaskId> order;                           // of issue
  std::vector<TaskId> done;                            // in the order of completion
  std::map<std::int32_t, std::vector<TaskId>> orders;  // by rank

 private:
  struct Running {
    std::size_t missing = 0;
  };

  // True if the inputs of the device's next task have been made on it, or everywhere.
  bool finish(std::size_t rank) {
    const TaskId id = devices_[rank].front();
    for (const FutureId input : issued.at(id).spec.inputs) {
      const auto producer = producer_.find(input);
      if (producer == producer_.end()) {
        ADD_FAILURE() << "issued before its input's producer";
        return false;
      }
      const auto still = running_.find(producer->second);
      if (still == running_.end()) continue;
      const auto& line = devices_[rank];
      EXPECT_EQ(std::ranges::count(line, producer->second), 0) << "before its producer on the same device";
      const auto ranks = scheduler_.groups().ranks(issued.at(producer->second).group);
      EXPECT_EQ(std::ranges::count(ranks, static_cast<std::int32_t>(rank)), 1)
          << "began before an input that another group makes";
    }
    devices_[rank].pop_front();
    if (--running_.at(id).missing > 0) return true;
    running_.erase(id);
    if (on_done) on_done(id);
    scheduler_.done(id);
    done.push_back(id);
    return true;
  }

  TaskScheduler& scheduler_;
  std::mt19937_64 random_;
  std::vector<std::deque<TaskId>> devices_;
  std::map<TaskId, Running> running_;
  std::map<FutureId, TaskId> producer_;
};

}  // namespace hyperrun::tasks
