// A driver decides what a run does. The controller, or a simulation of its devices, asks it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tasks/dispatcher.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::tasks {

// The logic of a run: the programs to load, the next invocation, the use of results. Its methods are called
// on the thread of Controller::run. An Error thrown by any of them ends the run.
class Driver {
 public:
  struct Assignment {
    LoadProgram program;
    std::vector<std::int32_t> ranks;  // devices that load it; empty: all
  };

  virtual ~Driver() = default;

  // Called when all devices are ready; devices[r] is rank r. Returns the programs to load, in order.
  virtual std::vector<Assignment> on_ready(const std::vector<DeviceInfo>& devices) = 0;

  // Called once, after on_ready. Returns the ranks of groups 1, 2 and so on. Group 0 is every device.
  virtual std::vector<std::vector<std::int32_t>> device_groups() { return {}; }

  // Called when every device has room in its window. nullopt: nothing to issue now; the driver is asked again
  // after the next on_done. The run ends in good order when there is nothing to issue and nothing in flight.
  virtual std::optional<Invocation> next_invocation() = 0;

  // Called instead by a run with groups. The invocation's group must have room.
  virtual std::optional<Invocation> next_within(const Dispatcher& dispatcher);

  // Called when all devices of the invocation's group have reported it. results[i] is of the group's i-th
  // rank (in group 0: of rank i). Within a group the calls come in the order of issue.
  virtual void on_done(const Invocation& invocation, std::span<const InvocationDone> results) = 0;

  // Describes an invocation in the error of a device that fails in it; empty: nothing to add.
  virtual std::string describe(const Invocation& invocation) const {
    static_cast<void>(invocation);
    return "";
  }

  // Called when the run fails, before the devices are ended. A foreign mpirun closes our output once its
  // ranks are gone, so a driver must write its message now.
  virtual void on_failed(const Error& cause) { static_cast<void>(cause); }
};

}  // namespace hyperrun::tasks
