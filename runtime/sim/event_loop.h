// The event loop of the simulator. Instructions of a stream run in order, events are honoured, and a
// collective starts when its whole group has come. The loop knows durations and meetings, but not what
// instructions do.
//
//   device 0  comm  |--wait--|==all-reduce==|
//   device 1  comm           |==all-reduce==|    the last to come starts it for both
#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/sim/timed_program.h"

namespace hyperrun {

// Times of one simulated device, in ns from the start of the Program.
struct SimTimes {
  std::vector<Span> spans;  // one for each instruction; a collective's begins when the device comes to it
  std::array<Nanos, kStreams> busy{};
  Nanos
      exposed{};  // time in which communication was under way and neither cube nor vector had anything to run
  Nanos end{};
  bool operator==(const SimTimes&) const = default;
};

// One simulated device. It may stand for several devices that are alike. `durations` and `meetings` have one
// entry for each distinct collective of its Program.
struct SimDevice {
  const TimedProgram* timed = nullptr;
  std::vector<Nanos> durations;        // none negative
  std::vector<std::int32_t> meetings;  // index into the event loop's meetings
  // Computation is `slowdown` times as long as modelled, and varies by `jitter` (SimOptions).
  double slowdown = 1, jitter = 0;
  std::uint64_t seed = 0;
  // The host on which it computes, and the number of devices of that host that it stands for. They share the
  // host's cores.
  int host = 0, alike = 1;

  Nanos computing(std::size_t instr) const;
};

// Runs all devices to their end. `meetings` is the number of devices that meet in each meeting. Each device
// meets there equally often, and is held until the last one has come and the instruction's duration has
// passed. `cores` is the number of cores of a host that devices share while they compute (shared_cores.h); 0:
// each computes as if it were alone. The result is deterministic. Throws kInternal if a device cannot run to
// its end.
std::vector<SimTimes> run_event_loop(std::span<const SimDevice> devices, std::span<const int> meetings,
                                     double cores = 0);

}  // namespace hyperrun
