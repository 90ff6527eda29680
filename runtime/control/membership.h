// The processes of a run and the devices that they host: which have joined, when each was last heard of, how
// far its devices are, and how to end it. A process is known by its MPI rank.
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
  DeviceBlock devices;
  std::vector<DeviceState> states;  // of these devices
  process::ProcessHandle process;   // set if it is known to run on the controller's machine
  Clock::time_point heard;
  bool answered = false;  // it has sent something since its welcome, so it knows that it has joined
  bool failed = false;    // it has said why it ends, or has ended before it joined
  bool hung = false;      // it has been silent for too long
  bool ready = false;     // it has asked for work
  bool goodbye = false;   // it has ended in good order
  bool gone = false;      // its connection has ended

  bool present() const { return connection != nullptr && !gone; }
  // The info of its first device, which names the process.
  const tasks::DeviceInfo& info() const { return states.front().info; }
  DeviceState& state(std::int32_t device) { return states[static_cast<std::size_t>(device - devices.first)]; }
  // Takes it for one that has not joined.
  void forget();
  // Enters its process.
  void introduce(const tasks::DeviceInfo& info);
  bool joined() const { return connection != nullptr && answered; }
};

class Membership {
 public:
  Membership(std::int32_t devices, std::int32_t ranks);

  // Enters a process; `info.rank` is its rank. If it comes again, its old connection is closed, and is not
  // taken for lost.
  Member& join(const tasks::DeviceInfo& info, std::shared_ptr<Connection> connection);
  Member& at(std::int32_t rank) { return members_[static_cast<std::size_t>(rank)]; }
  Member& of_device(std::int32_t device) {
    return at(process_of(device, static_cast<int>(members_.size()), devices_));
  }
  std::vector<Member>& all() { return members_; }

  bool all_joined() const;
  bool all_ready() const;
  bool all_gone() const;                         // of processes that had joined
  std::vector<std::int32_t> absent() const;      // ranks that have not joined
  std::vector<tasks::DeviceInfo> infos() const;  // of devices that had joined, by device
  std::vector<DeviceState> states() const;       // by device; its number is -1 if it has not joined

  void broadcast(std::string_view frame);
  bool anybody_silent(Clock::time_point since) const;
  // Moves all times of hearing by `time`: the controller itself was kept from listening, and nobody is to
  // blame.
  void forgive(Clock::duration time);

  // Kills hung processes, from here or through a neighbour on their own machine.
  void kill_hung();
  void kill_local();

 private:
  std::int32_t devices_;
  std::vector<Member> members_;
};

}  // namespace hyperrun::control
