// Strangers at the controller's port, and a stranger who poses as the controller.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "proto/control.pb.h"
#include "runtime/control/frame.h"
#include "tests/control/raw_socket.h"
#include "tests/control/thread_device.h"

namespace hyperrun::control {
namespace {

// Sends the bytes to a controller that waits for its only device. It must hang up on the stranger at once,
// and then run normally.
void intrude(const std::string& bytes) {
  Controller controller(test_options(1));
  ScriptedDriver driver(10);
  std::optional<Outcome> outcome;
  std::thread run([&] { outcome = controller.run(driver); });
  RawSocket stranger(controller.address());
  stranger.write(bytes);
  const Stopwatch watch;
  stranger.read_to_end();
  EXPECT_TRUE(stranger.ended);
  EXPECT_LT(watch.seconds(), 4) << "at once, not by the visitors' time limit";
  ThreadDevice device(controller.address(), 0, 1);
  run.join();
  EXPECT_TRUE(outcome->ok());
}

TEST(Intruder, GarbageBytes) { intrude("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); }
TEST(Intruder, OversizedFrame) { intrude(std::string("\xff\xff\xff\x7f", 4)); }
TEST(Intruder, AFrameAboveAVisitorsLimit) { intrude(std::string("\x01\x10\0\0", 4)); }
TEST(Intruder, EmptyFrame) { intrude(std::string(4, '\0')); }
TEST(Intruder, AFrameThatIsNoMessage) { intrude(std::string("\x05\0\0\0", 4) + "\xff\xff\xff\xff\xff"); }

TEST(Intruder, SilenceAndHalfAFrameDoNotHoldUpTheRun) {
  Controller controller(test_options(1));
  RawSocket silent(controller.address()), half(controller.address());
  half.write(std::string("\x05\0", 2));
  ThreadDevice device(controller.address(), 0, 1);
  ScriptedDriver driver(10);
  EXPECT_TRUE(controller.run(driver).ok());
}

// More silent strangers than may wait at once: the first give way to those that come later.
TEST(Intruder, ManySilentStrangersDoNotKeepADeviceOut) {
  Controller controller(test_options(1));
  ScriptedDriver driver(10);
  std::optional<Outcome> outcome;
  std::thread run([&] { outcome = controller.run(driver); });
  std::list<RawSocket> strangers;
  for (int i = 0; i < 100; ++i) strangers.emplace_back(controller.address());
  strangers.front().read_to_end();
  EXPECT_TRUE(strangers.front().ended);
  ThreadDevice device(controller.address(), 0, 1);
  run.join();
  EXPECT_TRUE(outcome->ok());
}

TEST(Intruder, NobodyConnectsOnceAllHaveJoined) {
  Controller controller(test_options(1));
  ThreadDevice device(controller.address(), 0, 1);
  ScriptedDriver driver(3);
  bool connected = true;
  driver.hook = [&](std::int64_t) { connected = RawSocket(controller.address()).connected; };
  EXPECT_TRUE(controller.run(driver).ok());
  EXPECT_FALSE(connected);
}

// A false controller that answers every connection with a welcome without proof, and an order.
class FalseController {
 public:
  FalseController() : thread_([this] { serve(); }) {}
  ~FalseController() {
    listener_.shut_down();
    thread_.join();
  }

  const std::string& address() const { return listener_.address(); }
  std::atomic<int> answered{0};

 private:
  void serve() {
    pb::Message challenge, welcome, order;
    challenge.mutable_challenge()->set_nonce(std::string(32, 'n'));
    welcome.mutable_welcome()->set_mac(std::string(32, 'm'));
    order.mutable_shutdown();
    std::string stream;
    for (const pb::Message* m : {&challenge, &welcome, &order}) append_frame(stream, *m, 4096);
    for (int fd = 0; (fd = listener_.accept()) >= 0;) {
      RawSocket victim(fd);
      victim.write(stream);
      victim.read_to_end();
      ++answered;
    }
  }

  Listener listener_;
  std::thread thread_;
};

// A device must not obey an impostor at the controller's address.
TEST(Intruder, AFalseControllerIsNotObeyed) {
  FalseController pretender;
  DeviceLinkOptions options = device_options(pretender.address(), 0, 1);
  options.connect_seconds = 0.3;
  ThreadDevice device(options);
  device.join();
  EXPECT_GE(pretender.answered, 1);
  EXPECT_FALSE(device.shut_down);
  ASSERT_TRUE(device.error);
  EXPECT_EQ(device.error->code(), Code::kControl);
}

}  // namespace
}  // namespace hyperrun::control
