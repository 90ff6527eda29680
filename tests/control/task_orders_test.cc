// Random programs, places and futures, finished in random orders: what must hold whatever is ready when.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/control/task_world.h"

namespace hyperrun::control {
namespace {

constexpr std::uint64_t kSeeds = 300;

// The same tasks for each seed.
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
      // What has been made is used by the next tasks, in its order: a queue of two then never blocks for
      // ever.
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
      // Back-pressure may end in a deadlock, which must then be one.
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

// With every queue unlimited nothing can be stuck, and no device is idle that has a task to run: a task that
// waits is kept by its inputs, by devices, or by an older one.
TEST(TaskOrders, NothingThatCouldGoIsLeftOut) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DeviceGroups groups(6);
    for (std::int32_t r = 0; r < 6; ++r) groups.add({r});
    TaskScheduler s(std::move(groups), {.window = 1, .ahead = false});
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
      return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
    };
    std::vector<PlaceId> places;
    std::vector<std::vector<GroupId>> of_place;
    for (int i = 0; i < 4; ++i) {
      std::vector<GroupId> any;
      for (GroupId g = 1; g <= 6; ++g)
        if (below(2) == 0) any.push_back(g);
      if (any.empty()) any.push_back(1);
      of_place.push_back(any);
      places.push_back(s.add_place(any));
    }
    const ProgramIndex p = s.add_program({.name = "p"}), q = s.add_program({.name = "q", .share = 3});
    std::vector<PlaceId> place_of;
    for (std::int64_t i = 0; i < 60; ++i) {
      const auto at = static_cast<std::size_t>(below(4));
      place_of.push_back(places[at]);
      s.submit({below(2) == 0 ? p : q, places[at], i, 0, {}, {}});
    }
    std::vector<Issue> running;
    std::vector<bool> busy(7), gone(60);
    for (std::size_t done = 0; done < 60; ++done) {
      while (const auto issue = s.next()) {
        running.push_back(*issue);
        busy[static_cast<std::size_t>(issue->group)] = true;
        gone[static_cast<std::size_t>(issue->task)] = true;
      }
      for (std::size_t t = 0; t < 60; ++t) {
        if (gone[t]) continue;
        for (const GroupId g : of_place[static_cast<std::size_t>(place_of[t])])
          ASSERT_TRUE(busy[static_cast<std::size_t>(g)]) << "task " << t << " could run on group " << g;
      }
      ASSERT_FALSE(running.empty());
      const auto at = static_cast<std::ptrdiff_t>(below(std::ssize(running)));
      busy[static_cast<std::size_t>(running[static_cast<std::size_t>(at)].group)] = false;
      s.done(running[static_cast<std::size_t>(at)].task);
      running.erase(running.begin() + at);
    }
  }
}

}  // namespace
}  // namespace hyperrun::control
