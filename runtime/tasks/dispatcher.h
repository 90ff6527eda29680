// The invocations in flight: which are out on which devices, who has reported. No input or output.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/tasks/device_groups.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

// Invocations that a device is given ahead of its reports.
inline constexpr std::int32_t kWindow = 8;

class Dispatcher {
 public:
  struct Completed {
    Invocation invocation;
    std::vector<InvocationDone> results;  // of the ranks of its group, ascending
  };

  // window: invocations that a device has at most and has not reported. `groups` outlives the dispatcher and
  // may grow.
  Dispatcher(const DeviceGroups& groups, std::int32_t window);

  std::int32_t window() const { return static_cast<std::int32_t>(window_); }
  bool has_room(GroupId group) const;  // on each of its devices
  bool idle() const { return in_flight_ == 0; }

  // Where its group has room.
  void issue(Invocation invocation);

  // A device's report. A device reports what it was given in the order in which it was given it: throws
  // kControl for anything else.
  void collect(std::int32_t rank, InvocationDone done);

  // The next invocation that all devices of its group have reported, in the order of the last report, which
  // within a group is the order of issue; nullptr: none. Valid until the next call.
  const Completed* take_completed();

  // What the device is to report next; nullptr: nothing.
  const Invocation* awaited(std::int32_t rank) const;

 private:
  struct Flight {
    Completed completed;
    std::int32_t missing = 0;
  };
  struct Entry {
    std::uint32_t flight = 0;
    std::uint32_t place = 0;  // of the device within its group
  };
  struct Device {
    std::uint32_t first = 0, count = 0;  // of its ring in entries_
  };

  std::uint32_t free_flight();
  const Entry& front(std::size_t rank) const { return entries_[rank * window_ + devices_[rank].first]; }

  const DeviceGroups& groups_;
  std::size_t window_;
  std::vector<Device> devices_;
  std::vector<Entry> entries_;  // window_ of each device
  std::deque<Flight> flights_;  // each used again when its invocation has been taken
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> completed_;
  std::int64_t in_flight_ = 0;  // issued and not taken
  std::int64_t taken_ = -1;     // lent to the caller
};

}  // namespace hyperrun::control
