// Runs that succeed, and runs that never begin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "tests/control/thread_device.h"

namespace hyperrun::control {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

std::vector<std::unique_ptr<ThreadDevice>> devices(const Controller& controller, int n) {
  std::vector<std::unique_ptr<ThreadDevice>> all;
  for (int r = 0; r < n; ++r) all.push_back(std::make_unique<ThreadDevice>(controller.address(), r, n));
  return all;
}

TEST(Session, AThousandInvocations) {
  Controller controller(test_options(4));
  auto all = devices(controller, 4);
  ScriptedDriver driver(1000);
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.ok()) << outcome.error->what();
  EXPECT_EQ(outcome.exit_status(), 0);
  EXPECT_EQ(driver.completed, 1000);
  EXPECT_EQ(driver.most_in_flight, 8);
  ASSERT_EQ(driver.devices.size(), 4u);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(driver.devices[static_cast<std::size_t>(r)].rank, r);
  for (auto& d : all) {
    d->join();
    EXPECT_FALSE(d->error);
    EXPECT_TRUE(d->shut_down);
    EXPECT_EQ(d->invocations, 1000);
    ASSERT_EQ(d->programs.size(), 1u);
    EXPECT_EQ(d->programs[0], (tasks::LoadProgram{7, "step", std::string("binary\0program", 14)}));
  }
}

TEST(Session, EachRoleLoadsItsOwnProgram) {
  ControllerOptions options = test_options(3);
  options.heartbeat_seconds *= kSlowdown;  // a device is silent while it reads nine megabytes
  Controller controller(options);
  auto all = devices(controller, 3);
  ScriptedDriver driver(3);
  driver.lockstep = true;
  driver.assignments = {{{7, "first", "A"}, {0, 2}},
                        {{7, "second", std::string(std::size_t{9} << 20, 'B')}, {1}}};
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.ok()) << outcome.error->what();
  EXPECT_EQ(driver.completed, 3);
  EXPECT_EQ(driver.most_in_flight, 1);
  for (auto& d : all) d->join();
  EXPECT_EQ(all[0]->programs[0].name, "first");
  EXPECT_EQ(all[1]->programs[0].content.size(), std::size_t{9} << 20);
  EXPECT_EQ(all[2]->programs[0].name, "first");
}

TEST(Session, WithoutWorkEndsInGoodOrder) {
  Controller controller(test_options(2));
  auto all = devices(controller, 2);
  ScriptedDriver driver(0);
  EXPECT_TRUE(controller.run(driver).ok());
}

TEST(Session, ADriversErrorEndsTheRun) {
  Controller controller(test_options(2));
  auto all = devices(controller, 2);
  ScriptedDriver driver(1000);
  driver.hook = [](std::int64_t done) {
    if (done == 3) throw Error(Code::kUnwritable, "cannot write metrics.jsonl");
  };
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kUnwritable);
  for (auto& d : all) {
    d->join();
    ASSERT_TRUE(d->error);
    EXPECT_EQ(d->error->code(), Code::kUnwritable);  // the device exits with the run's own code
  }
}

// A text of an error may have a path, and names of files need not be UTF-8.
TEST(Session, AnErrorsTextIsAnyBytes) {
  Controller controller(test_options(1));
  ThreadDevice device(controller.address(), 0, 1);
  ScriptedDriver driver(1000);
  driver.hook = [](std::int64_t) { throw Error(Code::kUnwritable, "cannot write caf\xe9/metrics.jsonl"); };
  controller.run(driver);
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->cause(), "cannot write caf\xe9/metrics.jsonl");
}

// A full disk: the record of the failure cannot be written either. No device is to blame.
TEST(Session, AnErrorInTellingOfAnErrorIsNotADevices) {
  Controller controller(test_options(2));
  auto all = devices(controller, 2);
  ScriptedDriver driver(1000);
  driver.fails_in_failure = true;
  driver.hook = [](std::int64_t done) {
    if (done == 3) throw Error(Code::kUnwritable, "cannot write metrics.jsonl");
  };
  const Outcome outcome = controller.run(driver);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kUnwritable);
  EXPECT_EQ(outcome.error->cause(), "cannot write metrics.jsonl");
  for (auto& d : all) d->join();
}

TEST(Session, ASlowDriverIsNotTakenForHungDevices) {
  ControllerOptions options = test_options(2);
  options.heartbeat_seconds = 0.2;
  Controller controller(options);
  auto all = devices(controller, 2);
  ScriptedDriver driver(3);
  driver.hook = [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(450)); };
  const Outcome outcome = controller.run(driver);
  EXPECT_TRUE(outcome.ok()) << outcome.error->what();
}

TEST(Session, ADeviceGivesUpASilentController) {
  Controller controller(test_options(1));
  DeviceLinkOptions options = device_options(controller.address(), 0, 1);
  options.silence = std::chrono::milliseconds(300);
  ThreadDevice device(options);
  ScriptedDriver driver(3);
  driver.hook =
      [&](std::int64_t completed) {  // the controller's thread stands still until the device is gone
        if (completed == 1) device.join();
      };
  EXPECT_FALSE(controller.run(driver).ok());
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->code(), Code::kControl);
  EXPECT_THAT(device.error->what(), HasSubstr("the controller has been silent for 0.3 s"));
}

TEST(Session, AControllerThatWaitsIsNotSilent) {
  ControllerOptions often = test_options(2);
  often.heartbeat_seconds = 0.1;
  Controller controller(often);
  DeviceLinkOptions options = device_options(controller.address(), 0, 2);
  options.silence = std::chrono::milliseconds(500);
  ThreadDevice first(options);
  std::optional<ThreadDevice> second;
  std::thread late([&] {
    std::this_thread::sleep_for(3 * options.silence);
    second.emplace(controller.address(), 1, 2);
  });
  ScriptedDriver driver(3);
  const Outcome outcome = controller.run(driver);
  late.join();
  EXPECT_TRUE(outcome.ok()) << outcome.error->what();
}

TEST(Join, NamesTheMissingRanks) {
  ControllerOptions options = test_options(5);
  options.join_seconds = 1;
  Controller controller(options);
  ThreadDevice zero(controller.address(), 0, 5), three(controller.address(), 3, 5);
  ScriptedDriver driver(1);
  const Stopwatch watch;
  const Outcome outcome = controller.run(driver);
  EXPECT_GE(watch.seconds(), 1);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kDeviceHung);
  EXPECT_EQ(outcome.error->place(), "device 1, device 2 and device 4");
  EXPECT_THAT(outcome.error->what(), HasSubstr("hung: not joined within 1 s of the start"));
  EXPECT_FALSE(outcome.all_joined);
}

// The device has joined, and MPI never starts.
TEST(Join, NamesWhoNeverGetsReady) {
  ControllerOptions options = test_options(2);
  options.join_seconds = 0.7;
  Controller controller(options);
  ThreadDevice ready(controller.address(), 0, 2);
  std::optional<DeviceLink> unready;
  std::thread joining([&] { unready.emplace(device_options(controller.address(), 1, 2)); });
  ScriptedDriver driver(1);
  const Outcome outcome = controller.run(driver);
  joining.join();
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code(), Code::kMpi);
  EXPECT_THAT(outcome.error->what(), HasSubstr("MPI did not start within 0.7 s on device 1 (host "));
  EXPECT_THAT(outcome.error->what(), Not(HasSubstr("device 0")));
  EXPECT_TRUE(outcome.all_joined);
}

// The device waits for slow controllers, not for dead ones.
TEST(Join, WhereNobodyListensADeviceGivesUpSoon) {
  DeviceLinkOptions options = device_options("127.0.0.1:1,127.0.0.1:2", 0, 1);
  options.connect_seconds = 3600;
  ThreadDevice device(options);
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->code(), Code::kControl);
}

TEST(Join, AWrongSecretIsRejectedAndTheRunGoesOn) {
  Controller controller(test_options(1));
  DeviceLinkOptions wrong = device_options(controller.address(), 0, 1);
  wrong.secret = "something else";
  ScriptedDriver driver(10);
  std::optional<Outcome> outcome;
  std::thread run([&] { outcome = controller.run(driver); });
  ThreadDevice intruder(wrong);
  intruder.join();
  ThreadDevice device(controller.address(), 0, 1);
  run.join();
  ASSERT_TRUE(intruder.error);
  EXPECT_THAT(intruder.error->what(), HasSubstr("does not know the run's secret"));
  EXPECT_TRUE(outcome->ok());
}

TEST(Join, ASecondDeviceOfOneRankIsRejected) {
  Controller controller(test_options(2));
  ScriptedDriver driver(10);
  std::optional<Outcome> outcome;
  std::thread run([&] { outcome = controller.run(driver); });
  DeviceLinkOptions elsewhere = device_options(controller.address(), 0, 2);
  elsewhere.machine = "another";
  ThreadDevice a(controller.address(), 0, 2), b(elsewhere);
  // One of two equal ranks is rejected. The run waits for rank 1, so neither device ends earlier, and rank 1
  // comes after the rejection.
  while (!a.ended && !b.ended) std::this_thread::yield();
  ThreadDevice one(controller.address(), 1, 2);
  run.join();
  a.join();
  b.join();
  EXPECT_TRUE(outcome->ok());
  ASSERT_NE(a.error.has_value(), b.error.has_value());
  EXPECT_THAT((a.error ? a.error : b.error)->what(), HasSubstr("rank 0 has joined already"));
}

TEST(Join, AWrongWorldSizeEndsTheRunForBothSides) {
  Controller controller(test_options(4));
  ThreadDevice device(controller.address(), 0, 3);
  ScriptedDriver driver(1);
  const Outcome outcome = controller.run(driver);
  device.join();
  ASSERT_TRUE(outcome.error && device.error);
  EXPECT_EQ(outcome.error->code(), Code::kTooFewRanks);
  EXPECT_EQ(device.error->code(), Code::kTooFewRanks);
  EXPECT_THAT(outcome.error->what(), HasSubstr("the run has 4 ranks, but this process is one of 3"));
}

TEST(Join, ADeviceOfAnotherVersionIsRejected) {
  Controller controller(test_options(1));
  DeviceLinkOptions options = device_options(controller.address(), 0, 1);
  options.version = "0.9";
  ThreadDevice device(options);
  ScriptedDriver driver(1);
  const Outcome outcome = controller.run(driver);
  device.join();
  ASSERT_TRUE(outcome.error && device.error);
  EXPECT_THAT(device.error->what(), HasSubstr("is version 0.9, the controller test"));
}

TEST(Join, FindsTheControllerAmongSeveralAddresses) {
  ControllerOptions open = test_options(1);
  open.loopback = false;
  Controller controller(open);
  const std::string port = controller.address().substr(controller.address().rfind(':'));
  ThreadDevice device("127.0.0.1:1,no-such-host.invalid" + port + ",127.0.0.1" + port, 0, 1);
  ScriptedDriver driver(1);
  EXPECT_TRUE(controller.run(driver).ok());
}

TEST(Join, OverIPv6) {
  ControllerOptions open = test_options(1);
  open.loopback = false;
  Controller controller(open);
  const std::string address = "[::1]" + controller.address().substr(controller.address().rfind(':'));
  namespace asio = boost::asio;
  asio::io_context io;
  boost::system::error_code none;
  asio::ip::tcp::acceptor six(io);
  six.open(asio::ip::tcp::v6(), none);
  if (!none) six.bind({asio::ip::address_v6::loopback(), 0}, none);
  if (none) GTEST_SKIP() << "this host has no IPv6: " << none.message();
  ThreadDevice device(address, 0, 1);
  ScriptedDriver driver(1);
  EXPECT_TRUE(controller.run(driver).ok());
}

TEST(Join, AnIPv6AddressWithoutBracketsIsNoAddress) {
  ThreadDevice device("::1:4711", 0, 1);
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_THAT(device.error->what(), HasSubstr("legal: host:port or [IPv6 address]:port"));
}

TEST(Join, ADeviceWithoutAControllerGivesUp) {
  DeviceLinkOptions options = device_options("127.0.0.1:1", 0, 1);
  options.connect_seconds = 0.3;
  ThreadDevice device(options);
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->code(), Code::kControl);
  EXPECT_THAT(device.error->what(),
              HasSubstr("cannot reach the controller at 127.0.0.1:1: Connection refused"));
  options.controller = "nonsense";
  ThreadDevice misled(options);
  misled.join();
  EXPECT_THAT(misled.error->what(), HasSubstr("legal: host:port"));
}

// Nobody listens at one address; the other accepts the connection and says nothing until the limit.
TEST(Join, EachAddressHasItsReason) {
  namespace asio = boost::asio;
  asio::io_context io;
  asio::ip::tcp::acceptor silent(io, {asio::ip::address_v4::loopback(), 0});
  const std::string address = "127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  DeviceLinkOptions options = device_options("127.0.0.1:1," + address, 0, 1);
  options.connect_seconds = 0.5;
  ThreadDevice device(options);
  device.join();
  ASSERT_TRUE(device.error);
  EXPECT_THAT(device.error->what(),
              HasSubstr("cannot reach the controller at 127.0.0.1:1: Connection refused; " + address +
                        ": it does not answer"));
}

}  // namespace
}  // namespace hyperrun::control
