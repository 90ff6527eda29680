// List schedules, compared with all orders of small problems and with the rules of any schedule.
#include "runtime/mpmd/list_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hyperrun {
namespace {

constexpr StreamKind kStreamsUsed[] = {StreamKind::kCube, StreamKind::kVector, StreamKind::kComm};

std::vector<StreamTask> random_tasks(std::mt19937& random, std::int32_t n) {
  std::vector<StreamTask> tasks;
  for (std::int32_t t = 0; t < n; ++t) {
    StreamTask task{kStreamsUsed[random() % 3], Nanos(static_cast<std::int64_t>(random() % 10))};
    for (std::int32_t before = 0; before < t; ++before)
      if (random() % 4 == 0) task.after.push_back(before);
    tasks.push_back(task);
  }
  find_urgencies(tasks);
  return tasks;
}

bool is_legal(const std::vector<StreamTask>& tasks, const std::vector<std::int32_t>& order) {
  std::vector<bool> done(tasks.size(), false);
  for (const std::int32_t t : order) {
    for (const std::int32_t before : tasks[static_cast<std::size_t>(t)].after)
      if (!done[static_cast<std::size_t>(before)]) return false;
    done[static_cast<std::size_t>(t)] = true;
  }
  return order.size() == tasks.size() && std::ranges::all_of(done, [](bool d) { return d; });
}

std::vector<std::int32_t> as_numbered(std::size_t n) {
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(ListSchedule, UrgencyIsTheLongestPath) {
  std::vector<StreamTask> tasks{{StreamKind::kCube, Nanos(3)},
                                {StreamKind::kCube, Nanos(4), {}, {0}},
                                {StreamKind::kComm, Nanos(7), {}, {0}},
                                {StreamKind::kCube, Nanos(2), {}, {1, 2}}};
  find_urgencies(tasks);
  EXPECT_EQ(tasks[0].urgency, Nanos(12));
  EXPECT_EQ(tasks[1].urgency, Nanos(6));
  EXPECT_EQ(tasks[3].urgency, Nanos(2));
}

// A task that an exchange waits for comes before one that nothing waits for.
TEST(ListSchedule, TheUrgentComesFirst) {
  std::vector<StreamTask> tasks{
      {StreamKind::kCube, Nanos(5)}, {StreamKind::kCube, Nanos(5)}, {StreamKind::kComm, Nanos(5), {}, {1}}};
  find_urgencies(tasks);
  EXPECT_EQ(list_schedule(tasks), (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(makespan(tasks, list_schedule(tasks)), Nanos(10));
  EXPECT_EQ(makespan(tasks, as_numbered(3)), Nanos(15));
}

// Graham's bound: at most the number of streams times as long as the best. For few tasks it is much closer.
// All orders are tried.
TEST(ListSchedule, IsCloseToTheBestOfAllOrders) {
  std::mt19937 random(11);
  double lists = 0, best_of_all = 0, numbered = 0;
  for (int round = 0; round < 60; ++round) {
    const std::vector<StreamTask> tasks = random_tasks(random, 7);
    const std::vector<std::int32_t> order = list_schedule(tasks);
    ASSERT_TRUE(is_legal(tasks, order));
    std::vector<std::int32_t> other = as_numbered(tasks.size());
    Nanos best = makespan(tasks, other);
    numbered += static_cast<double>(best.value);
    do {
      if (is_legal(tasks, other)) best = std::min(best, makespan(tasks, other));
    } while (std::ranges::next_permutation(other).found);
    EXPECT_GE(makespan(tasks, order), best);
    EXPECT_LE(makespan(tasks, order), best * 3);
    lists += static_cast<double>(makespan(tasks, order).value);
    best_of_all += static_cast<double>(best.value);
  }
  EXPECT_LT(lists, 1.03 * best_of_all);
  EXPECT_LT(lists, numbered);
}

TEST(ListSchedule, IsLegalForManyTasks) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const std::vector<StreamTask> tasks = random_tasks(random, 120);
    EXPECT_TRUE(is_legal(tasks, list_schedule(tasks)));
  }
}

}  // namespace
}  // namespace hyperrun
