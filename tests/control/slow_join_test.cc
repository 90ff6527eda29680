// Joining over a line that is slow or breaks, as it is in a crowd of processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>

#include "runtime/control/connection_acceptor.h"
#include "runtime/control/start_limit.h"
#include "tests/control/slow_line.h"
#include "tests/control/thread_device.h"

namespace hyperrun::control {
namespace {

using std::chrono::milliseconds;
using Body = pb::Message::BodyCase;
using Fate = SlowLine::Fate;

// Shorter than the delay, which no limit of one attempt or of silence may cover.
constexpr double kAttempt = 0.1, kHeartbeat = 0.3;
constexpr milliseconds kDelay{400};

// With the heartbeat the device shows that it knows that it has joined.
const std::vector<Body> kHandshake{Body::kChallenge, Body::kHello, Body::kWelcome, Body::kHeartbeat};
const std::vector<Body> kBeforeItKnows{Body::kChallenge, Body::kHello, Body::kWelcome};

std::string number_of(const testing::TestParamInfo<Body>& message) {
  return "Number" + std::to_string(static_cast<int>(message.param));
}

ControllerOptions impatient(std::int32_t devices) {
  ControllerOptions options = test_options(devices);
  options.heartbeat_seconds = kHeartbeat * kSlowdown;
  return options;
}

DeviceLinkOptions impatient_device(const std::string& address, std::int32_t rank, std::int32_t world) {
  DeviceLinkOptions options = device_options(address, rank, world);
  options.attempt_seconds = kAttempt;
  return options;
}

// Two devices join, the first over the line.
void expect_good_run(const SlowLine::OnMessage& on_message) {
  Controller controller(impatient(2));
  SlowLine line(controller.address(), on_message);
  ThreadDevice slow(impatient_device(line.address(), 0, 2));
  ThreadDevice other(impatient_device(controller.address(), 1, 2));
  ScriptedDriver driver(10);
  const Outcome outcome = controller.run(driver);
  slow.join();
  ASSERT_TRUE(outcome.ok()) << outcome.error->what();
  EXPECT_EQ(driver.completed, 10);
  EXPECT_FALSE(slow.error) << slow.error->what();
}

class SlowJoin : public testing::TestWithParam<Body> {};
class BrokenJoin : public testing::TestWithParam<Body> {};

TEST_P(SlowJoin, ADelayOfOneMessage) {
  std::atomic<int> delayed{0};
  expect_good_run([&](int, const pb::Message& message) {
    const bool again = message.body_case() == Body::kHeartbeat && delayed > 0;
    if (message.body_case() == GetParam() && !again) {
      ++delayed;
      std::this_thread::sleep_for(kDelay);
    }
    return Fate::kPass;
  });
  EXPECT_EQ(delayed, 1) << "the device must not try again: it would be as slow";
}

// The line breaks instead of carrying the message. The device comes again, and its first connection is no
// loss.
TEST_P(BrokenJoin, AtOneMessage) {
  std::atomic<int> connections{0};
  expect_good_run([&](int connection, const pb::Message& message) {
    connections = std::max(connections.load(), connection + 1);
    return connection == 0 && message.body_case() == GetParam() ? Fate::kBreak : Fate::kPass;
  });
  EXPECT_EQ(connections, 2);
}

// The controller does not learn that the device has given up its first connection.
TEST_P(BrokenJoin, UnseenByTheController) {
  expect_good_run([&](int connection, const pb::Message& message) {
    return connection == 0 && message.body_case() == GetParam() ? Fate::kBreakUnseen : Fate::kPass;
  });
}

INSTANTIATE_TEST_SUITE_P(Messages, SlowJoin, testing::ValuesIn(kHandshake), number_of);
INSTANTIATE_TEST_SUITE_P(Messages, BrokenJoin, testing::ValuesIn(kBeforeItKnows), number_of);

TEST(SlowJoin, ADelayOfEachMessage) {
  std::array<std::atomic<bool>, 32> seen{};
  expect_good_run([&](int, const pb::Message& message) {
    const auto body = static_cast<std::size_t>(message.body_case());
    if (std::ranges::count(kHandshake, message.body_case()) > 0 && !seen.at(body).exchange(true))
      std::this_thread::sleep_for(kDelay);
    return Fate::kPass;
  });
}

// The answer on a connection that the device has given up arrives after it has joined by another. It must not
// take that one's place.
TEST(SlowJoin, AnAnswerThatComesTooLate) {
  std::promise<void> joined;
  const std::shared_future<void> by_another = joined.get_future().share();
  std::atomic<bool> asked{false}, told{false};
  expect_good_run([&](int connection, const pb::Message& message) {
    if (connection == 0 && message.body_case() == Body::kHello) {
      if (!asked.exchange(true)) return Fate::kBreakFirst;
      by_another.wait();
    }
    if (connection == 1 && message.body_case() == Body::kHeartbeat && !told.exchange(true))
      joined.set_value();
    return Fate::kPass;
  });
  EXPECT_TRUE(told);
}

// Half a minute for one message of the handshake, another one for each device, with the default limits. It
// takes half a minute, nearly all of it asleep.
TEST(SlowJoin, HalfAMinuteAtAnyPoint) {
  const int devices = static_cast<int>(kHandshake.size());
  ControllerOptions options = test_options(devices);
  options.heartbeat_seconds = ControllerOptions().heartbeat_seconds * kSlowdown;
  options.join_seconds.reset();
  Controller controller(options);
  std::deque<SlowLine> lines;
  std::deque<ThreadDevice> joining;
  std::deque<std::atomic<bool>> delayed(kHandshake.size());
  for (int d = 0; d < devices; ++d) {
    const auto at = static_cast<std::size_t>(d);
    lines.emplace_back(controller.address(), [&, at](int, const pb::Message& message) {
      if (message.body_case() == kHandshake[at] && !delayed[at].exchange(true))
        std::this_thread::sleep_for(std::chrono::seconds(30));
      return Fate::kPass;
    });
    DeviceLinkOptions device = device_options(lines.back().address(), d, devices);
    device.connect_seconds = DeviceLinkOptions().connect_seconds;
    joining.emplace_back(device);
  }
  ScriptedDriver driver(10);
  const Outcome outcome = controller.run(driver);
  lines.clear();  // a device that has not joined gives up
  for (ThreadDevice& device : joining) device.join();
  ASSERT_TRUE(outcome.ok()) << outcome.error->what();
  for (const std::atomic<bool>& one : delayed) EXPECT_TRUE(one);
}

TEST(SlowJoin, TheLimitsAllowTwiceWhatACrowdTakes) {
  EXPECT_GE(start_seconds(256), 2 * 180) << "256 ranks took three minutes on two cores";
}

// The controller dies in the middle of the handshake.
TEST(SlowJoin, ADeadControllerIsToldSoon) {
  std::optional<Listener> listener(std::in_place);
  DeviceLinkOptions options = device_options(listener->address(), 0, 1);
  options.connect_seconds = 3600;
  ThreadDevice device(options);
  std::optional<RawSocket> accepted(std::in_place, listener->accept());
  listener.reset();
  const Stopwatch watch;
  accepted.reset();
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->code(), Code::kControl);
  EXPECT_LT(watch.seconds(), 5 * kSlowdown);
}

// A stranger at one address accepts the connection and says nothing.
TEST(SlowJoin, AStrangersSilenceDoesNotHideTheController) {
  Controller controller(test_options(1));
  Listener stranger;
  DeviceLinkOptions options = device_options(stranger.address() + "," + controller.address(), 0, 1);
  options.connect_seconds = 60;
  options.patience_seconds = 0.1;
  ThreadDevice device(options);
  ScriptedDriver driver(1);
  EXPECT_TRUE(controller.run(driver).ok());
}

}  // namespace
}  // namespace hyperrun::control
