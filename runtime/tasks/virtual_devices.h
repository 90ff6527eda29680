// Devices on a clock of their own, for simulations and tests: each does what it is given in that order, and
// what several share begins when all of them have come to it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/tasks/driver.h"

namespace hyperrun::control {

class VirtualDevices {
 public:
  explicit VirtualDevices(std::int32_t devices);

  // Ids are given once. It begins now, or when the last of `ranks` has done what it was given before.
  void give(std::int64_t id, std::span<const std::int32_t> ranks, Nanos lasts);

  bool idle() const { return ends_.empty(); }
  struct Done {
    std::int64_t id = 0;
    std::vector<std::int32_t> ranks;
    Nanos begin{}, end{};
  };
  // Goes on to what ends next; of what ends at once, to what was given first. Not when idle.
  Done advance();

  Nanos now() const { return now_; }
  std::span<const Nanos> busy() const { return busy_; }  // by rank

 private:
  struct Given {
    std::vector<std::int32_t> ranks;
    Nanos lasts{}, begin{};
    std::size_t missing = 0;  // devices that have something else to do before
  };
  struct End {
    Nanos time;
    std::int64_t id;
    bool operator<(const End& other) const { return time != other.time ? time > other.time : id > other.id; }
  };

  void comes_to(std::int64_t id);

  std::vector<std::deque<std::int64_t>> queues_;  // by rank
  std::map<std::int64_t, Given> given_;           // under way too
  std::priority_queue<End> ends_;
  std::vector<Nanos> busy_;
  Nanos now_{};
};

// What invocations come to on such devices.
class VirtualWork {
 public:
  virtual ~VirtualWork() = default;
  virtual Nanos lasts(const Invocation& invocation) = 0;
  // By device of its group. Called in the order in which invocations end.
  virtual std::vector<InvocationDone> done(const Invocation& invocation, Nanos begin, Nanos end) = 0;
};

// A run from its first invocation to its last, with a window of so many as a controller has. `devices` are
// new.
void drive(Driver& driver, VirtualDevices& devices, VirtualWork& work, std::int32_t window);

}  // namespace hyperrun::control
