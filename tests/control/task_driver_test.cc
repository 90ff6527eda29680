// Two programs on two groups of devices, through the whole control plane.
#include "runtime/tasks/task_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/control/thread_device.h"

namespace hyperrun::control {
namespace {

using testing::HasSubstr;

tasks::DeviceGroups actor_and_learner() {
  tasks::DeviceGroups groups(3);
  groups.add({0, 2});
  groups.add({1});
  return groups;
}

// The actor's outputs go to the learner; the next is submitted when one is done.
class TwoPrograms : public tasks::TaskDriver {
 public:
  explicit TwoPrograms(std::int64_t steps)
      : tasks::TaskDriver(actor_and_learner(), {.scheduling = tasks::Scheduling::kDynamic, .window = 2}),
        steps_(steps) {
    actor_ = scheduler().add_program({.name = "actor", .queue = 3});
    learner_ = scheduler().add_program({.name = "learner"});
    pair_ = scheduler().add_place({1});
    single_ = scheduler().add_place({2});
  }

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>&) override {
    for (int i = 0; i < 5; ++i) submit();
    return {{{7, "step", "program"}, {}}};
  }

  std::map<std::string, std::int64_t> done;
  std::int64_t fails_at = -1;

 protected:
  tasks::Invocation invocation_of(tasks::TaskId, const tasks::TaskSpec& task, tasks::GroupId) override {
    return {0, 7, 0, {{"offset", task.step}, {"lr", 0.5}}, "", tasks::kEveryDevice};
  }

  void on_task_done(tasks::TaskId, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override {
    const std::vector<std::int32_t> ranks = task.program == actor_ ? std::vector{0, 2} : std::vector{1};
    ASSERT_EQ(results.size(), ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i)
      EXPECT_EQ(results[i].outputs.at("answer"), 1000.0 * ranks[i] + static_cast<double>(task.step) + 0.25);
    ++done[scheduler().program(task.program).name];
    if (task.program == learner_ && task.step == fails_at) throw Error(Code::kNotFinite, "the loss is nan");
    if (task.program == learner_) submit();
  }

 private:
  void submit() {
    if (submitted_ == steps_) return;
    const tasks::FutureId batch = scheduler().add_future({"batch", Bytes(10), 1});
    scheduler().submit({actor_, pair_, submitted_, 0, {}, {batch}});
    scheduler().submit({learner_, single_, submitted_, 0, {batch}, {}});
    ++submitted_;
  }

  std::int64_t steps_, submitted_ = 0;
  tasks::ProgramIndex actor_ = 0, learner_ = 0;
  tasks::PlaceId pair_ = 0, single_ = 0;
};

std::vector<std::unique_ptr<ThreadDevice>> three_devices(const Controller& controller) {
  std::vector<std::unique_ptr<ThreadDevice>> all;
  for (int r = 0; r < 3; ++r) all.push_back(std::make_unique<ThreadDevice>(controller.address(), r, 3));
  return all;
}

TEST(TaskDriver, RunsProgramsSideBySide) {
  Controller controller(test_options(3));
  auto all = three_devices(controller);
  TwoPrograms driver(200);
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.ok()) << outcome.reason();
  EXPECT_EQ(driver.done["actor"], 200);
  EXPECT_EQ(driver.done["learner"], 200);
  EXPECT_LE(driver.tasks().progress()[0].most_queued, 3);
  for (auto& d : all) {
    d->join();
    EXPECT_TRUE(d->shut_down);
    EXPECT_EQ(d->invocations, 200);
  }
}

TEST(TaskDriver, AProgramThatFailsEndsTheRunWithItsName) {
  Controller controller(test_options(3));
  auto all = three_devices(controller);
  TwoPrograms driver(200);
  driver.fails_at = 17;
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kNotFinite);
  EXPECT_EQ(outcome.error->place(), "program learner, task 17");
  EXPECT_EQ(outcome.error->cause(), "the loss is nan");
}

// Device 1 runs the learner alone.
TEST(TaskDriver, ADeviceThatFailsIsNamedWithItsProgram) {
  Controller controller(test_options(3));
  ThreadDevice zero(controller.address(), 0, 3), two(controller.address(), 2, 3);
  std::thread one([&] {
    DeviceLink link(device_options(controller.address(), 1, 3));
    while (!std::holds_alternative<tasks::Invocation>(link.next(1))) {
    }
    link.fail(1, Error(Code::kNotFinite, "a weight is nan").at("instruction 9"));
  });
  TwoPrograms driver(200);
  const Outcome outcome = controller.run(driver);
  one.join();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kNotFinite);
  EXPECT_THAT(outcome.error->place(), HasSubstr("device 1 (host "));
  EXPECT_THAT(outcome.error->place(), HasSubstr("), program learner, task 0, instruction 9"));
}

// A task waits for a future without a producer: the run ends with an error and does not wait.
class Stuck : public TwoPrograms {
 public:
  Stuck() : TwoPrograms(0) {}
  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>&) override {
    scheduler().submit({0, 0, 0, 0, {scheduler().add_future({"prompt"})}, {}});
    return {};
  }
};

TEST(TaskDriver, ADeadlockEndsTheRunWithItsNames) {
  Controller controller(test_options(3));
  auto all = three_devices(controller);
  Stuck driver;
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kControl);
  EXPECT_THAT(outcome.error->what(), HasSubstr("actor 0 waits for \"prompt\", which no task makes"));
}

}  // namespace
}  // namespace hyperrun::control
