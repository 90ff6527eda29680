// Random programs, places and futures, finished in random orders: properties that hold whatever is ready
// when.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/tasks/task_world.h"

namespace hyperrun::tasks {
namespace {

constexpr std::uint64_t kSeeds = 300;

// Makes the same tasks for each seed.
class RandomTasks {
 public:
  RandomTasks(std::uint64_t seed, Scheduling scheduling) : random_(seed) {
    const std::int32_t devices = below(6) + 2;
    DeviceGroups groups(devices);
    for (std::int32_t r = 0; r < devices; ++r) groups.add({r});
    for (std::int32_t r = 0; r + 1 < devices; r += below(2) + 1) groups.add({r, r + 1});
    const GroupId count = groups.size();
    scheduler.emplace(std::move(groups), TaskScheduler::Options{scheduling, below(3) + 1, below(2) == 0});
    for (GroupId g = 0; g < count; ++g) places_.push_back(scheduler->add_place({g}));
    places_.push_back(scheduler->add_place({1, devices}));
    for (std::int32_t p = below(3) + 1; p >= 0; --p)
      queues.push_back(below(2) == 0 ? 0 : below(3) + 2),
          scheduler->add_program({.name = std::string(1, static_cast<char>('a' + p)),
                                  .share = 0.5 + below(4),
                                  .queue = queues.back()});
    submit_all();
  }

  std::optional<TaskScheduler> scheduler;
  std::vector<std::int64_t> queues;  // by program
  std::int64_t tasks = 0;

 private:
  std::int32_t below(std::int32_t n) {
    return std::uniform_int_distribution<std::int32_t>(0, n - 1)(random_);
  }

  void submit_all() {
    std::vector<FutureId> open;
    for (; tasks < 120; ++tasks) {
      TaskSpec spec;
      spec.program = below(static_cast<std::int32_t>(queues.size()));
      spec.place = places_[static_cast<std::size_t>(below(static_cast<std::int32_t>(places_.size())))];
      spec.step = tasks;
      spec.priority = below(8) == 0 ? 1 : 0;
      // The next tasks use finished outputs in their order: a queue of two then never blocks for ever.
      for (std::size_t i = 0; !open.empty() && i < 2; ++i) {
        spec.inputs.push_back(open.front());
        open.erase(open.begin());
      }
      if (below(2) == 0) {
        spec.outputs.push_back(scheduler->add_future({"", Bytes(1), 1}));
        open.push_back(spec.outputs.back());
      }
      scheduler->submit(std::move(spec));
    }
  }

  std::mt19937_64 random_;
  std::vector<PlaceId> places_;
};

void expect_all_done_in_order(const TaskWorld& world, const RandomTasks& tasks) {
  ASSERT_EQ(std::ssize(world.done), tasks.tasks) << tasks.scheduler->deadlock().what();
  std::map<FutureId, std::size_t> made;
  for (std::size_t i = 0; i < world.order.size(); ++i) {
    const TaskSpec& spec = world.issued.at(world.order[i]).spec;
    for (const FutureId input : spec.inputs) EXPECT_TRUE(made.contains(input));
    for (const FutureId output : spec.outputs) made[output] = i;
  }
}

TEST(TaskOrders, EveryTaskOnceInTheOrderOfItsInputsWithinItsQueues) {
  int complete = 0;
  for (const Scheduling scheduling : {Scheduling::kStatic, Scheduling::kDynamic}) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      RandomTasks tasks(seed, scheduling);
      TaskWorld world(*tasks.scheduler, seed + 1000);
      while (world.turn()) {
        const std::vector<ProgramProgress> progress = tasks.scheduler->progress();
        for (std::size_t p = 0; p < progress.size(); ++p) {
          if (tasks.queues[p] > 0) {
            EXPECT_LE(progress[p].most_queued, tasks.queues[p]);
          }
        }
      }
      // Back-pressure may end in a deadlock, which must then be a real one.
      if (tasks.scheduler->stuck()) {
        const std::vector<ProgramProgress> progress = tasks.scheduler->progress();
        EXPECT_TRUE(std::ranges::any_of(progress, [](const ProgramProgress& p) {
          return p.wait_for_queue > 0;
        })) << tasks.scheduler->deadlock().what();
        continue;
      }
      expect_all_done_in_order(world, tasks);
      ++complete;
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  EXPECT_GT(complete, static_cast<int>(kSeeds));
}

TEST(TaskOrders, StaticOrdersDoNotDependOnWhatIsReadyWhen) {
  for (std::uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    std::optional<std::map<std::int32_t, std::vector<TaskId>>> orders;
    for (std::uint64_t completion = 0; completion < 20; ++completion) {
      RandomTasks tasks(seed, Scheduling::kStatic);
      TaskWorld world(*tasks.scheduler, completion);
      world.run();
      if (!orders) orders = world.orders;
      EXPECT_EQ(world.orders, *orders) << "seed " << seed << ", completions " << completion;
      for (const auto& [rank, order] : world.orders) EXPECT_TRUE(std::ranges::is_sorted(order));
    }
  }
}

// Sixty tasks without inputs for random places on six devices, one at a time on each.
class FreeTasks {
 public:
  explicit FreeTasks(std::uint64_t seed)
      : random_(seed), scheduler_(singles(), {.window = 1, .ahead = false}) {
    scheduler_.add_program({.name = "p"});
    scheduler_.add_program({.name = "q", .share = 3});
    for (int i = 0; i < 4; ++i) add_place();
    for (std::int64_t i = 0; i < kTasks; ++i) {
      place_of_.push_back(static_cast<PlaceId>(below(4)));
      scheduler_.submit({static_cast<ProgramIndex>(below(2)), place_of_.back(), i, 0, {}, {}});
    }
  }

  static constexpr std::int64_t kTasks = 60;

  void issue() {
    while (const auto issue = scheduler_.next()) {
      running_.push_back(*issue);
      busy_[static_cast<std::size_t>(issue->group)] = true;
      gone_[static_cast<std::size_t>(issue->task)] = true;
    }
  }

  void expect_no_idle_device_with_work() const {
    for (std::size_t t = 0; t < gone_.size(); ++t) {
      if (gone_[t]) continue;
      for (const GroupId g : places_[static_cast<std::size_t>(place_of_[t])])
        ASSERT_TRUE(busy_[static_cast<std::size_t>(g)]) << "task " << t << " could run on group " << g;
    }
  }

  void finish_one() {
    ASSERT_FALSE(running_.empty());
    const auto at = running_.begin() + below(std::ssize(running_));
    busy_[static_cast<std::size_t>(at->group)] = false;
    scheduler_.done(at->task);
    running_.erase(at);
  }

 private:
  static DeviceGroups singles() {
    DeviceGroups groups(6);
    for (std::int32_t r = 0; r < 6; ++r) groups.add({r});
    return groups;
  }

  void add_place() {
    std::vector<GroupId> any;
    for (GroupId g = 1; g <= 6; ++g)
      if (below(2) == 0) any.push_back(g);
    if (any.empty()) any.push_back(1);
    places_.push_back(any);
    scheduler_.add_place(std::move(any));
  }

  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }

  std::mt19937_64 random_;
  TaskScheduler scheduler_;
  std::vector<std::vector<GroupId>> places_;
  std::vector<PlaceId> place_of_;  // by task
  std::vector<Issue> running_;
  std::vector<bool> busy_ = std::vector<bool>(7), gone_ = std::vector<bool>(kTasks);
};

TEST(TaskOrders, NoDeviceIsIdleThatHasATaskToRun) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FreeTasks tasks(seed);
    for (std::int64_t done = 0; done < FreeTasks::kTasks && !HasFailure(); ++done) {
      tasks.issue();
      tasks.expect_no_idle_device_with_work();
      tasks.finish_one();
    }
  }
}

}  // namespace
}  // namespace hyperrun::tasks
