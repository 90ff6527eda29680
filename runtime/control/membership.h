// The devices of a run: which have joined, when each was last heard of, how far it is, and how to end it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/connection.h"
#include "runtime/control/diagnosis.h"
#include "runtime/process/host.h"

namespace hyperrun::control {

struct Member {
  std::shared_ptr<Connection> connection;  // null: it has not joined
  DeviceState state;
  process::ProcessHandle process;  // set if it is known to run on the controller's machine
  Clock::time_point heard;
  bool answered = false;  // it has sent something since its welcome, so it knows that it has joined
  bool failed = false;    // it has said why it ends, or has ended before it joined
  bool hung = false;      // it has been silent for too long
  bool ready = false;     // it has asked for work
  bool goodbye = false;   // it has ended in good order
  bool gone = false;      // its connection has ended

  bool present() const { return connection != nullptr && !gone; }
  bool joined() const { return connection != nullptr && answered; }
};

class Membership {
 public:
  explicit Membership(std::int32_t devices) : members_(static_cast<std::size_t>(devices)) {}

  // Enters a device. If its process comes again, its old connection is closed, and is not taken for lost.
  Member& join(tasks::DeviceInfo info, std::shared_ptr<Connection> connection);
  Member& at(std::int32_t rank) { return members_[static_cast<std::size_t>(rank)]; }
  std::vector<Member>& all() { return members_; }

  bool all_joined() const;
  bool all_ready() const;
  bool all_gone() const;                         // of devices that had joined
  std::vector<std::int32_t> absent() const;      // ranks that have not joined
  std::vector<tasks::DeviceInfo> infos() const;  // of devices that had joined, by rank
  std::vector<DeviceState> states() const;       // by rank; rank -1: it has not joined

  void broadcast(std::string_view frame);
  bool anybody_silent(Clock::time_point since) const;
  // Moves all times of hearing by `time`: the controller itself was kept from listening, and nobody is to
  // blame.
  void forgive(Clock::duration time);

  // Kills a hung device, from here or through a neighbour on its own machine.
  void kill_hung();
  void kill_local();

 private:
  std::vector<Member> members_;
};

}  // namespace hyperrun::control
