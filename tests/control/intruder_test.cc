// Strangers at the controller's port, and a stranger who poses as the controller.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/control.pb.h"
#include "runtime/control/frame.h"
#include "tests/control/thread_device.h"

namespace hyperrun::control {
namespace {

// A blocking socket without manners.
class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  explicit RawSocket(const std::string& address) : RawSocket(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  ~RawSocket() { ::close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void write(const std::string& bytes) { send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  std::string read_to_end() {
    std::string all;
    char buffer[4096];
    for (ssize_t n = 0; (n = recv(fd_, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
    ended = errno != EAGAIN;
    return all;
  }
  int fd() const { return fd_; }

  bool ended = false;  // the other side closed, we did not give up waiting

 private:
  int fd_;
};

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

// A false controller that answers every connection with a welcome without proof, and an order.
class FalseController {
 public:
  FalseController() : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(bind(listener_.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(listen(listener_.fd(), 8), 0);
    getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&at), &size);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~FalseController() {
    shutdown(listener_.fd(), SHUT_RDWR);
    thread_.join();
  }

  std::string address;
  std::atomic<int> answered{0};

 private:
  void serve() {
    pb::Message challenge, welcome, order;
    challenge.mutable_challenge()->set_nonce(std::string(32, 'n'));
    welcome.mutable_welcome()->set_mac(std::string(32, 'm'));
    order.mutable_shutdown();
    std::string stream;
    for (const pb::Message* m : {&challenge, &welcome, &order}) append_frame(stream, *m, 4096);
    for (int fd = 0; (fd = accept(listener_.fd(), nullptr, nullptr)) >= 0;) {
      RawSocket victim(fd);
      victim.write(stream);
      victim.read_to_end();
      ++answered;
    }
  }

  RawSocket listener_;
  std::thread thread_;
};

// A device must not obey an impostor at the controller's address.
TEST(Intruder, AFalseControllerIsNotObeyed) {
  FalseController pretender;
  DeviceLinkOptions options = device_options(pretender.address, 0, 1);
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
