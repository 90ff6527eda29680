// The event-driven walk: streams in order, events honoured, collectives met by their whole group. It knows
// durations and who meets whom; what instructions are is none of its business.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"
#include "runtime/sim/track.h"

namespace hyperrun {

// When one walker did what, in ns from the start of the Program.
struct SimTimes {
  std::vector<Span> spans;  // one an instruction; a collective's begins when the device comes to it
  std::array<Nanos, kStreams> busy{};
  Nanos exposed{};  // communication was under way, and neither cube nor vector had anything to run
  Nanos end{};
  bool operator==(const SimTimes&) const = default;
};

// One device, or all devices that are alike. One of each of its track's slots:
struct Walker {
  const Track* track = nullptr;
  std::vector<Nanos> durations;        // none negative
  std::vector<std::int32_t> meetings;  // index into the walk's meetings
  // Of what it computes: times as long as it should be, and how much each differs from that (SimOptions).
  double slowdown = 1, jitter = 0;
  std::uint64_t seed = 0;
  // Where it computes, and how many devices of that host it stands for: they share its cores.
  int host = 0, alike = 1;

  Nanos computing(std::size_t instr) const;
};

// `meetings`: how many walkers meet in each; each meets there as often as the others, and is held until
// the last one has come and the instruction's duration has passed. `cores`: of a host, that walkers share
// while they compute (shared_cores.h); 0: each computes as if it were alone. Deterministic. Throws kInternal
// when a walker cannot run to its end.
std::vector<SimTimes> walk(std::span<const Walker> walkers, std::span<const int> meetings, double cores = 0);

}  // namespace hyperrun
