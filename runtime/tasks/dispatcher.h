// The dispatcher knows the invocations in flight: the devices that have each, and those that have reported.
// It does no input or output.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/tasks/device_groups.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::tasks {

// Invocations that a device is given ahead of its reports.
inline constexpr std::int32_t kWindow = 8;

class Dispatcher {
 public:
  struct Completed {
    Invocation invocation;
    std::vector<InvocationDone> results;  // of the ranks of its group, ascending
  };

  // `window` is the most unreported invocations that a device may have. `groups` outlives the dispatcher and
  // may grow.
  Dispatcher(const DeviceGroups& groups, std::int32_t window);

  std::int32_t window() const { return static_cast<std::int32_t>(window_); }
  bool has_room(GroupId group) const;  // on each device of the group
  bool idle() const { return in_flight_ == 0; }

  // Records an invocation as issued. Its group must have room.
  void issue(Invocation invocation);

  // Records a device's report. A device reports its invocations in the order of issue; throws kControl for
  // anything else.
  void collect(std::int32_t rank, InvocationDone done);

  // Returns the next invocation that all devices of its group have reported; nullptr: none. They come in the
  // order of the last report, which within a group is the order of issue. Valid until the next call.
  const Completed* take_completed();

  // Returns the invocation that the device must report next; nullptr: none.
  const Invocation* awaited(std::int32_t rank) const;

 private:
  struct Flight {
    Completed completed;
    std::int32_t missing = 0;
  };
  struct Entry {
    std::uint32_t flight = 0;
    std::uint32_t place = 0;  // index of the device within its group
  };
  struct Device {
    std::uint32_t first = 0, count = 0;  // place of its ring in entries_
  };

  std::uint32_t free_flight();
  const Entry& front(std::size_t rank) const { return entries_[rank * window_ + devices_[rank].first]; }

  const DeviceGroups& groups_;
  std::size_t window_;
  std::vector<Device> devices_;
  std::vector<Entry> entries_;  // `window_` entries for each device
  std::deque<Flight> flights_;  // each is reused once its invocation has been taken
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> completed_;
  std::int64_t in_flight_ = 0;  // number issued and not yet taken
  std::int64_t taken_ = -1;     // index of the flight lent to the caller
};

}  // namespace hyperrun::tasks
