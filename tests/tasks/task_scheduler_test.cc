#include "runtime/tasks/task_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/tasks/task_world.h"

namespace hyperrun::tasks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceGroups groups_of(std::int32_t devices, const std::vector<std::vector<std::int32_t>>& groups) {
  DeviceGroups all(devices);
  for (const auto& ranks : groups) all.add(ranks);
  return all;
}

TaskSpec task(ProgramIndex program, PlaceId place, std::int64_t step, std::vector<FutureId> inputs = {},
              std::vector<FutureId> outputs = {}, std::int32_t priority = 0) {
  return {program, place, step, priority, std::move(inputs), std::move(outputs)};
}

std::vector<std::int64_t> steps(const TaskWorld& world, ProgramIndex program) {
  std::vector<std::int64_t> steps;
  for (const TaskId id : world.order)
    if (world.issued.at(id).spec.program == program) steps.push_back(world.issued.at(id).spec.step);
  return steps;
}

TEST(TaskScheduler, GoesAheadOfInputsOnlyWhereItsDevicesMakeThem) {
  for (const bool ahead : {true, false}) {
    TaskScheduler s(groups_of(3, {{0, 1}, {0}, {2}}), {.window = 3, .ahead = ahead});
    const ProgramIndex p = s.add_program({.name = "p"});
    const PlaceId pair = s.add_place({1}), first = s.add_place({2}), third = s.add_place({3});
    const FutureId a = s.add_future({"a", Bytes(8), 3});
    const TaskId makes = s.submit(task(p, pair, 0, {}, {a}));
    const TaskId same = s.submit(task(p, pair, 1, {a})), part = s.submit(task(p, first, 2, {a})),
                 other = s.submit(task(p, third, 3, {a}));
    std::vector<TaskId> before;
    while (const auto issue = s.next()) before.push_back(issue->task);
    EXPECT_EQ(before, ahead ? std::vector({makes, same, part}) : std::vector({makes}));
    s.done(makes);
    std::vector<TaskId> after;
    while (const auto issue = s.next()) after.push_back(issue->task);
    std::ranges::sort(after);
    EXPECT_EQ(after, ahead ? std::vector({other}) : std::vector({same, part, other}));
  }
}

TEST(TaskScheduler, PriorityGoesFirstThenTheOldest) {
  TaskScheduler s(groups_of(1, {}), {.window = 1});
  const ProgramIndex p = s.add_program({.name = "p"});
  const PlaceId all = s.add_place({kEveryDevice});
  for (std::int64_t i = 0; i < 4; ++i) s.submit(task(p, all, i, {}, {}, i == 2 ? 5 : 0));
  TaskWorld world(s, 1);
  world.run();
  EXPECT_THAT(steps(world, p), ElementsAre(2, 0, 1, 3));
}

// While all programs wait, after any number of tasks each has had its share of them to within one task.
TEST(TaskScheduler, SharesHoldWithinOneTask) {
  TaskScheduler s(groups_of(2, {{0}, {1}}), {.window = 1});
  const std::vector<double> shares = {1, 2, 5};
  const PlaceId any = s.add_place({1, 2});
  for (std::size_t p = 0; p < shares.size(); ++p) {
    s.add_program({.name = "p" + std::to_string(p), .share = shares[p]});
    for (std::int64_t i = 0; i < 400; ++i) s.submit(task(static_cast<ProgramIndex>(p), any, i));
  }
  TaskWorld world(s, 3);
  std::map<GroupId, std::vector<double>> had;
  std::map<GroupId, double> total;
  while (world.order.size() < 480) {
    const std::size_t before = world.order.size();
    ASSERT_TRUE(world.turn());
    for (std::size_t i = before; i < world.order.size(); ++i) {
      const TaskWorld::Issued& issued = world.issued.at(world.order[i]);
      auto& of_group = had[issued.group];
      of_group.resize(3);
      ++of_group[static_cast<std::size_t>(issued.spec.program)];
      const double n = ++total[issued.group];
      for (std::size_t p = 0; p < 3; ++p) EXPECT_LE(std::abs(of_group[p] - n * shares[p] / 8), 1 + 1e-9);
    }
  }
}

TEST(TaskScheduler, WhoHadNothingToRunIsOwedNothing) {
  TaskScheduler s(groups_of(1, {}), {.window = 1});
  const ProgramIndex busy = s.add_program({.name = "busy"}), late = s.add_program({.name = "late"});
  const PlaceId all = s.add_place({kEveryDevice});
  for (std::int64_t i = 0; i < 200; ++i) s.submit(task(busy, all, i));
  TaskWorld world(s, 1);
  while (world.done.size() < 100) world.turn();
  for (std::int64_t i = 0; i < 50; ++i) s.submit(task(late, all, i));
  const std::size_t from = world.order.size();
  while (world.order.size() < from + 40) world.turn();
  EXPECT_NEAR(static_cast<double>(steps(world, late).size()), 20, 1);
}

TEST(TaskScheduler, TheGroupWithLeastToDoIsTaken) {
  TaskScheduler s(groups_of(4, {{0, 1}, {2, 3}}), {.window = 4});
  const ProgramIndex p = s.add_program({.name = "p"});
  const PlaceId first = s.add_place({1}), any = s.add_place({1, 2});
  for (std::int64_t i = 0; i < 2; ++i) s.submit(task(p, first, i));
  while (s.next()) {
  }
  std::vector<GroupId> taken;
  for (std::int64_t i = 2; i < 6; ++i) {
    s.submit(task(p, any, i));
    taken.push_back(s.next()->group);
  }
  EXPECT_THAT(taken, testing::AnyOf(ElementsAre(2, 2, 1, 2), ElementsAre(2, 2, 2, 1)));
}

// Devices become free one after the other. When the last one is free, all of them take the urgent task, and
// the last one does not take the task that waits for it alone.
TEST(TaskScheduler, WhatIsUrgentAndNeedsSeveralDevicesIsNotPassed) {
  TaskScheduler s(groups_of(4, {{0}, {1}, {2}, {3}}), {.window = 1});
  const ProgramIndex p = s.add_program({.name = "p"});
  std::vector<PlaceId> places;
  for (GroupId g = 1; g <= 4; ++g) places.push_back(s.add_place({g}));
  const PlaceId all = s.add_place({kEveryDevice});
  for (std::int64_t i = 0; i < 3; ++i)
    for (const PlaceId place : places) s.submit(task(p, place, i));
  std::vector<TaskId> first;
  while (const auto issue = s.next()) first.push_back(issue->task);
  ASSERT_EQ(first.size(), 4U);
  const TaskId urgent = s.submit(task(p, all, 0, {}, {}, 1));
  for (const TaskId id : first) {
    EXPECT_FALSE(s.next()) << "passed what is more urgent";
    s.done(id);
  }
  const auto next = s.next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->task, urgent);
}

// Two programs on the same devices, each with groups of its own: a less urgent task does not overtake a task
// that has another possible group without room.
TEST(TaskScheduler, WhatIsUrgentAndMayGoAnywhereIsNotPassed) {
  TaskScheduler s(groups_of(2, {{0}, {1}, {0}, {1}}), {.window = 1});
  const ProgramIndex p = s.add_program({.name = "p"}), q = s.add_program({.name = "q"});
  const PlaceId of_p = s.add_place({1, 2}), of_q = s.add_place({3, 4});
  s.submit(task(p, of_p, 0));
  s.submit(task(p, of_p, 1));
  const auto first = s.next(), second = s.next();
  ASSERT_TRUE(first && second);
  s.submit(task(p, of_p, 2));
  const TaskId urgent = s.submit(task(q, of_q, 0, {}, {}, 1));
  EXPECT_FALSE(s.next());
  s.done(second->task);
  const auto next = s.next();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->task, urgent);
  EXPECT_EQ(next->group, 4) << "the first device has a task";
}

// A task of all devices, among a stream of tasks of single devices.
TEST(TaskScheduler, SmallGroupsDoNotStarveALargeOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    TaskScheduler s(groups_of(4, {{0}, {1}, {2}, {3}}), {.window = 2});
    const ProgramIndex small = s.add_program({.name = "small"}), large = s.add_program({.name = "large"});
    std::vector<PlaceId> places;
    for (GroupId g = 1; g <= 4; ++g) places.push_back(s.add_place({g}));
    const PlaceId all = s.add_place({kEveryDevice});
    std::int64_t n = 0;
    const auto more = [&] {
      for (const PlaceId place : places) s.submit(task(small, place, n++));
    };
    TaskWorld world(s, seed);
    for (int i = 0; i < 5; ++i) more();
    for (int i = 0; i < 10; ++i) world.turn();
    s.submit(task(large, all, 0));
    const std::int64_t before = n;
    for (int i = 0; i < 400 && steps(world, large).empty(); ++i) {
      if (i % 4 == 0) more();
      ASSERT_TRUE(world.turn());
    }
    ASSERT_EQ(steps(world, large).size(), 1u) << "seed " << seed;
    for (const TaskId id : world.order) {
      if (world.issued.at(id).spec.program == large) break;
      EXPECT_LT(world.issued.at(id).spec.step, before) << "went before an older task";
    }
  }
}

TEST(TaskScheduler, AFullQueueHoldsItsProgramAndNoOther) {
  TaskScheduler s(groups_of(2, {{0}, {1}}), {.window = 8});
  const ProgramIndex rollout = s.add_program({.name = "rollout", .queue = 2, .queue_bytes = Bytes(100)});
  const ProgramIndex learner = s.add_program({.name = "learner"});
  const PlaceId zero = s.add_place({1}), one = s.add_place({2});
  std::vector<FutureId> batches;
  for (std::int64_t i = 0; i < 4; ++i) {
    batches.push_back(s.add_future({"batch", Bytes(i == 2 ? 60 : 50)}));
    s.submit(task(rollout, zero, i, {}, {batches.back()}));
  }
  EXPECT_EQ(s.next()->task, 0);
  EXPECT_EQ(s.next()->task, 1);
  EXPECT_FALSE(s.next());
  EXPECT_EQ(s.progress()[0].wait_for_queue, 2);
  EXPECT_EQ(s.progress()[0].queued_bytes, Bytes(100));
  s.done(0);
  EXPECT_FALSE(s.next());  // made, and not used
  const TaskId use = s.submit(task(learner, one, 0, {batches[0]}));
  EXPECT_EQ(s.next()->task, use);
  s.done(use);
  EXPECT_FALSE(s.next());  // one of two is used, but 50 + 60 bytes are more than 100
  s.done(1);
  const TaskId use_more = s.submit(task(learner, one, 1, {batches[1]}));
  EXPECT_EQ(s.next()->task, use_more);
  s.done(use_more);
  EXPECT_EQ(s.next()->task, 2);
  EXPECT_EQ(s.progress()[0].most_queued, 2);
}

TEST(TaskScheduler, TellsHowFarEachProgramIs) {
  TaskScheduler s(groups_of(2, {{0}, {1}}), {.window = 1});
  const ProgramIndex text = s.add_program({.name = "text"}), image = s.add_program({.name = "image"});
  const PlaceId zero = s.add_place({1}), one = s.add_place({2});
  const FutureId pixels = s.add_future({"pixels"});
  s.submit(task(image, one, 0, {}, {pixels}));
  s.submit(task(text, zero, 0));
  s.submit(task(text, zero, 1));
  s.submit(task(text, zero, 2, {pixels}));
  while (s.next()) {
  }
  const std::vector<ProgramProgress> progress = s.progress();
  EXPECT_EQ(progress[0].name, "text");
  EXPECT_EQ(progress[0].submitted, 3);
  EXPECT_EQ(progress[0].issued, 1);
  EXPECT_EQ(progress[0].wait_for_devices, 1);
  EXPECT_EQ(progress[0].wait_for_input, 1);
  EXPECT_EQ(progress[1].issued, 1);
  EXPECT_EQ(progress[1].queued, 1);
  s.done(0);
  EXPECT_EQ(s.progress()[1].done, 1);
}

// ---- Refusals and deadlocks

std::string refusal(TaskScheduler& s, const TaskSpec& spec) {
  const std::int64_t before = s.waiting();
  try {
    s.submit(spec);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kControl);
    EXPECT_EQ(s.waiting(), before);
    return e.what();
  }
  return "";
}

TEST(TaskScheduler, RefusesWhatCouldNeverRun) {
  TaskScheduler s(groups_of(2, {{0}}), {});
  const ProgramIndex actor = s.add_program({.name = "actor", .queue = 1});
  const PlaceId all = s.add_place({kEveryDevice});
  EXPECT_THROW(s.add_place({1, kEveryDevice}), Error);
  EXPECT_THROW(s.add_place({7}), Error);
  const FutureId a = s.add_future({"a"}), b = s.add_future({"b"}), c = s.add_future({"c"});
  EXPECT_THAT(refusal(s, task(actor, 9, 0)), HasSubstr("place 9"));
  EXPECT_THAT(refusal(s, task(5, all, 0)), HasSubstr("no program 5"));
  EXPECT_THAT(refusal(s, task(actor, all, 0, {99})), HasSubstr("its input 99 is no future"));
  EXPECT_THAT(refusal(s, task(actor, all, 0, {}, {a, b})), HasSubstr("never fit into the queue"));
  EXPECT_THAT(refusal(s, task(actor, all, 0, {a}, {a})), HasSubstr("in a circle"));
  EXPECT_EQ(refusal(s, task(actor, all, 1, {a}, {b})), "");
  EXPECT_EQ(refusal(s, task(actor, all, 2, {b}, {c})), "");
  const std::string circle = refusal(s, task(actor, all, 3, {c}, {a}));
  EXPECT_THAT(circle,
              HasSubstr("task actor 3: error[control]: tasks wait for each other in a circle: actor 3 "
                        "makes \"a\" for actor 1, which makes \"b\" for actor 2, which makes \"c\" for "
                        "actor 3"));
  EXPECT_THAT(refusal(s, task(actor, all, 4, {}, {b})), HasSubstr("\"b\" has a producer already"));
  EXPECT_THAT(refusal(s, task(actor, all, 4, {b})), HasSubstr("more consumers than its 1 uses"));
}

TEST(TaskScheduler, StaticSchedulingWantsProducersFirst) {
  TaskScheduler s(groups_of(1, {}), {.scheduling = Scheduling::kStatic});
  const ProgramIndex p = s.add_program({.name = "p"});
  const PlaceId all = s.add_place({kEveryDevice});
  const FutureId a = s.add_future({"a"});
  EXPECT_THAT(refusal(s, task(p, all, 0, {a})), HasSubstr("its input \"a\" has no producer yet"));
}

TEST(TaskScheduler, NamesADeadlockOfTheQueue) {
  for (const Scheduling scheduling : {Scheduling::kStatic, Scheduling::kDynamic}) {
    TaskScheduler s(groups_of(1, {}), {.scheduling = scheduling});
    const ProgramIndex actor = s.add_program({.name = "actor", .queue = 1});
    const ProgramIndex critic = s.add_program({.name = "critic"});
    const PlaceId all = s.add_place({kEveryDevice});
    const FutureId a = s.add_future({"left"}), b = s.add_future({"right"});
    s.submit(task(actor, all, 0, {}, {a}));
    s.submit(task(actor, all, 1, {}, {b}));
    s.submit(task(critic, all, 0, {a, b}));
    TaskWorld world(s, 1);
    world.run();
    ASSERT_TRUE(s.stuck());
    EXPECT_THAT(
        s.deadlock().what(),
        HasSubstr("2 tasks wait, and nothing runs that they could wait for:\n"
                  "  actor 1 waits for room: the queue of actor has room for 1 outputs, and 1 (0 B) are "
                  "not used yet: \"left\" (for critic 0)\n"
                  "  critic 0 waits for \"right\" of actor 1"));
  }
}

TEST(TaskScheduler, NamesAnInputThatNobodyMakesAndWhatIsBehindIt) {
  TaskScheduler dynamic(groups_of(1, {}), {});
  const ProgramIndex p = dynamic.add_program({.name = "p"});
  const FutureId a = dynamic.add_future({"a"});
  dynamic.submit(task(p, dynamic.add_place({kEveryDevice}), 0, {a}));
  EXPECT_FALSE(dynamic.next());
  ASSERT_TRUE(dynamic.stuck());
  EXPECT_THAT(dynamic.deadlock().what(), HasSubstr("p 0 waits for \"a\", which no task makes"));

  TaskScheduler fixed(groups_of(1, {}), {.scheduling = Scheduling::kStatic});
  const ProgramIndex maker = fixed.add_program({.name = "maker", .queue = 1});
  const ProgramIndex user = fixed.add_program({.name = "user"});
  const PlaceId all = fixed.add_place({kEveryDevice});
  const FutureId b = fixed.add_future({"b"}), c = fixed.add_future({"c"});
  fixed.submit(task(maker, all, 0, {}, {b}));
  fixed.submit(task(maker, all, 1, {}, {c}));
  fixed.submit(task(user, all, 0, {b}));
  TaskWorld world(fixed, 1);
  world.run();
  ASSERT_TRUE(fixed.stuck());
  EXPECT_THAT(fixed.deadlock().what(), HasSubstr("user 0 is behind maker 1 on device 0"));
}

}  // namespace
}  // namespace hyperrun::tasks
