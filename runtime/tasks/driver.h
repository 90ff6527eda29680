// What a run does: the controller, or a simulation of its devices, asks a driver.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/dispatcher.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

// The logic of a run: what to load, what to run next, what to do with results. Called on the thread
// of Controller::run. An Error thrown by any of these ends the run with it.
class Driver {
 public:
  struct Assignment {
    LoadProgram program;
    std::vector<std::int32_t> ranks;  // who loads it; empty: everybody
  };

  virtual ~Driver() = default;

  // All devices are ready; devices[r] is rank r. Returns what they load, in order.
  virtual std::vector<Assignment> on_ready(const std::vector<DeviceInfo>& devices) = 0;

  // Called once, after on_ready: who belongs to group 1, 2 and so on. Group 0 is every device.
  virtual std::vector<std::vector<std::int32_t>> device_groups() { return {}; }

  // Every device has room in its window. No value: nothing to issue now; the driver is asked again after
  // the next on_done. The run ends in good order when it has nothing to issue and nothing is in flight.
  virtual std::optional<Invocation> next_invocation() = 0;

  // The same for drivers with groups, asked instead: the invocation's group must have room.
  virtual std::optional<Invocation> next_within(const Dispatcher& dispatcher);

  // All devices of the invocation's group have reported it; results[i] is that of the group's i-th rank
  // (of group 0: of rank i). Within a group in the order of issue.
  virtual void on_done(const Invocation& invocation, std::span<const InvocationDone> results) = 0;

  // What an invocation is, in words, for the error of a device that fails in it; empty: nothing to add.
  virtual std::string describe(const Invocation& invocation) const {
    static_cast<void>(invocation);
    return "";
  }

  // The run fails with this, and the devices are about to be ended: the moment to say so, as a foreign
  // mpirun closes our output once its ranks are gone.
  virtual void on_failed(const Error& cause) { static_cast<void>(cause); }
};

}  // namespace hyperrun::control
