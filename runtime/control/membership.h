// The devices of a run: who is in, when each was last heard of, how far it is, and how to end it.
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
  std::shared_ptr<Connection> connection;  // none: has not joined
  DeviceState state;
  ProcessHandle process;  // where it is known to run on the controller's machine
  Clock::time_point heard;
  bool failed = false;   // has said why it ends, or has ended before it joined
  bool hung = false;     // has been silent for too long
  bool ready = false;    // has asked for work
  bool goodbye = false;  // has ended in good order
  bool gone = false;     // its connection has ended

  bool present() const { return connection != nullptr && !gone; }
};

class Membership {
 public:
  explicit Membership(std::int32_t devices) : members_(static_cast<std::size_t>(devices)) {}

  Member& join(DeviceInfo info, std::shared_ptr<Connection> connection);
  Member& at(std::int32_t rank) { return members_[static_cast<std::size_t>(rank)]; }
  std::vector<Member>& all() { return members_; }

  bool all_joined() const;
  bool all_ready() const;
  bool all_gone() const;                     // of those who had joined
  std::vector<std::int32_t> absent() const;  // who has not joined
  std::vector<DeviceInfo> infos() const;     // of those who had joined, by rank
  std::vector<DeviceState> states() const;   // by rank; rank -1: has not joined

  void broadcast(std::string_view frame);
  bool anybody_silent(Clock::time_point since) const;
  // The controller itself was kept from listening for that long: nobody is to blame.
  void forgive(Clock::duration time);

  // SIGKILL for a hung device: from here, or through a neighbour on its own machine.
  void kill_hung();
  void kill_local();

 private:
  std::vector<Member> members_;
};

}  // namespace hyperrun::control
