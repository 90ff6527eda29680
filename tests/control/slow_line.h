// A line between devices and their controller that delays messages, holds them back, or breaks.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <thread>

#include "proto/control.pb.h"
#include "runtime/control/frame.h"
#include "tests/control/raw_socket.h"

namespace hyperrun::control {

class SlowLine {
 public:
  enum class Fate {
    kPass,
    kBreak,        // both sides break
    kBreakUnseen,  // the device's side breaks; the controller sees nothing
    kBreakFirst,   // likewise, and then on_message is asked again
  };
  // Says what becomes of a message of the n-th connection, from 0. It may take its time.
  using OnMessage = std::function<Fate(int connection, const pb::Message& message)>;

  SlowLine(std::string controller, OnMessage on_message)
      : controller_(std::move(controller)),
        on_message_(std::move(on_message)),
        thread_([this] { serve(); }) {}
  // Breaks all connections.
  ~SlowLine() {
    listener_.shut_down();
    thread_.join();
    for (Pair& pair : pairs_) {
      pair.device.shut_down();
      pair.controller.shut_down();
    }
    for (Pair& pair : pairs_) {
      pair.up.join();
      pair.down.join();
    }
  }
  SlowLine(const SlowLine&) = delete;
  SlowLine& operator=(const SlowLine&) = delete;

  const std::string& address() const { return listener_.address(); }

 private:
  struct Pair {
    Pair(int fd, const std::string& to) : device(fd), controller(to) {}

    RawSocket device, controller;
    std::atomic<bool> broken{false};
    std::thread up, down;
  };

  void serve() {
    int number = 0;
    for (int fd = 0; (fd = listener_.accept()) >= 0; ++number) {
      Pair& pair = pairs_.emplace_back(fd, controller_);
      pair.up = std::thread([this, &pair, number] { carry(pair.device, pair.controller, pair, number); });
      pair.down = std::thread([this, &pair, number] { carry(pair.controller, pair.device, pair, number); });
    }
  }

  void carry(RawSocket& from, RawSocket& to, Pair& pair, int number) {
    FrameReader reader(kMaxFrame);
    for (;;) {
      const std::span<char> room = reader.prepare();
      const ssize_t n = from.read_some(room.data(), room.size());
      if (n <= 0) break;
      reader.commit(static_cast<std::size_t>(n));
      while (const auto frame = reader.next()) {
        pb::Message message;
        message.ParseFromArray(frame->data(), static_cast<int>(frame->size()));
        if (!passes(message, pair, number)) return;
        std::string bytes;
        append_frame(bytes, message, kMaxFrame);
        to.write(bytes);
      }
    }
    if (!pair.broken) to.end_writing();
  }

  bool passes(const pb::Message& message, Pair& pair, int number) {
    Fate fate = on_message_(number, message);
    if (fate == Fate::kPass) return true;
    pair.broken = true;
    pair.device.shut_down();
    if (fate == Fate::kBreakFirst) fate = on_message_(number, message);
    if (fate == Fate::kBreak) pair.controller.shut_down();
    return fate == Fate::kPass;
  }

  static constexpr std::size_t kMaxFrame = std::size_t{1} << 20;

  std::string controller_;
  OnMessage on_message_;
  Listener listener_;
  std::list<Pair> pairs_;
  std::thread thread_;
};

}  // namespace hyperrun::control
