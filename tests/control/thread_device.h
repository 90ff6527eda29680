// A device as a thread of the test.
#pragma once

#include <atomic>
#include <optional>
#include <thread>

#include "runtime/control/device_link.h"
#include "tests/control/fleet.h"
#include "tests/control/scripted_driver.h"

namespace hyperrun::control {

inline DeviceLinkOptions device_options(const std::string& controller, std::int32_t rank,
                                        std::int32_t world) {
  DeviceLinkOptions options;
  options.controller = controller;
  options.secret = test_options(1).secret;
  options.rank = rank;
  options.world_size = world;
  options.version = "test";
  options.connect_seconds = 10;
  options.terminate = [](int) {};  // the test's process is to live
  return options;
}

class ThreadDevice {
 public:
  ThreadDevice(const std::string& controller, std::int32_t rank, std::int32_t world)
      : ThreadDevice(device_options(controller, rank, world)) {}
  explicit ThreadDevice(DeviceLinkOptions options)
      : options_(std::move(options)), thread_([this] { run(); }) {}
  ~ThreadDevice() { join(); }

  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> ended{false};
  std::vector<tasks::LoadProgram> programs;  // after join
  std::int64_t invocations = 0;
  bool shut_down = false;
  std::optional<Error> error;

 private:
  void run() {
    try {
      DeviceLink link(options_);
      while (!shut_down) serve(link, link.next(options_.rank));
      link.close();
    } catch (const Error& e) {
      error = e;
    }
    ended = true;
    ended.notify_all();
  }

  void serve(DeviceLink& link, const tasks::Command& command) {
    if (const auto* program = std::get_if<tasks::LoadProgram>(&command)) programs.push_back(*program);
    if (std::holds_alternative<tasks::Shutdown>(command)) shut_down = true;
    if (const auto* invocation = std::get_if<tasks::Invocation>(&command)) {
      ++invocations;
      link.report(
          options_.rank,
          {invocation->id, {{"answer", answer(options_.rank, *invocation)}}, programs.front().content});
    }
  }

  DeviceLinkOptions options_;
  std::thread thread_;
};

}  // namespace hyperrun::control
