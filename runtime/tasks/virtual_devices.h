// Devices on a clock of their own, for simulations and tests. Each runs its work in the order given. Work
// that several share begins when all of them have come to it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/tasks/driver.h"

namespace hyperrun::tasks {

class VirtualDevices {
 public:
  explicit VirtualDevices(std::int32_t devices);

  // Gives work to devices. An id is given once. The work begins now, or when the last of `ranks` has finished
  // its earlier work.
  void give(std::int64_t id, std::span<const std::int32_t> ranks, Nanos lasts);

  bool idle() const { return ends_.empty(); }
  struct Done {
    std::int64_t id = 0;
    std::vector<std::int32_t> ranks;
    Nanos begin{}, end{};
  };
  // Advances to the next end; of ends at one moment, to the work given first. It must not be called when
  // idle.
  Done advance();

  Nanos now() const { return now_; }
  std::span<const Nanos> busy() const { return busy_; }  // by rank

 private:
  struct Given {
    std::vector<std::int32_t> ranks;
    Nanos lasts{}, begin{};
    std::size_t missing = 0;  // number of devices with earlier work
  };
  struct End {
    Nanos time;
    std::int64_t id;
    bool operator<(const End& other) const { return time != other.time ? time > other.time : id > other.id; }
  };

  void comes_to(std::int64_t id);

  std::vector<std::deque<std::int64_t>> queues_;  // by rank
  std::map<std::int64_t, Given> given_;           // including work under way
  std::priority_queue<End> ends_;
  std::vector<Nanos> busy_;
  Nanos now_{};
};

// The durations and results of invocations on virtual devices.
class VirtualWork {
 public:
  virtual ~VirtualWork() = default;
  virtual Nanos lasts(const Invocation& invocation) = 0;
  // Returns the results by device of the invocation's group. Called in the order in which invocations end.
  virtual std::vector<InvocationDone> done(const Invocation& invocation, Nanos begin, Nanos end) = 0;
};

// Runs a driver from its first invocation to its last, with a controller's window. `devices` must be new.
void drive(Driver& driver, VirtualDevices& devices, VirtualWork& work, std::int32_t window);

}  // namespace hyperrun::tasks
