// The statistics of one invocation of a Program on one device. The executor and the simulator fill them; they
// are sent to the controller and written to traces and reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

using CategoryBytes = std::array<Bytes, kCategories>;

// A kind of traffic: a collective along some axes, or "prefetch" and "store" with the tier in place of the
// axes.
struct TrafficKind {
  std::string collective, axes;
  bool operator==(const TrafficKind&) const = default;
};

// The kind of traffic of a Prefetch or a Store.
TrafficKind transfer_kind(const InstrOp& op);

// The time in which an instruction ran, in nanoseconds of std::chrono::steady_clock.
struct Span {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

struct Traffic {
  TrafficKind kind;
  std::int64_t count = 0;
  Bytes bytes{};      // bytes that this device moved
  Bytes elsewhere{};  // those of them to or from another host's part of the pool; unknown to simulations
  bool operator==(const Traffic&) const = default;
};

// The time of one kind of communication, and its exposed part, in which neither cube nor vector computed.
struct UnderWay {
  Nanos time{}, exposed{};
  bool operator==(const UnderWay&) const = default;
};

// A curve of bytes over time: (time, bytes) after each change.
using Curve = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct InvocationStats {
  std::int64_t begin = 0, end = 0;  // steady_clock, ns
  std::array<Nanos, kStreams> busy{};
  Nanos exposed{};  // time in which compute waited for communication
  std::vector<Traffic> traffic;
  std::vector<UnderWay> under_way;  // one for each of `traffic`; empty if streams had no threads of their own
  TierBytes high_water{};           // end of the highest byte touched so far in the run
  Bytes live_peak{};                // the actual live peak of HBM; in a simulation the planned one (peak_use)
  CategoryBytes live_at_peak{};
  std::vector<Span> spans;           // one for each instruction
  std::array<Curve, kTiers> live{};  // live bytes of each tier; only when traced
  bool operator==(const InvocationStats&) const = default;
};

}  // namespace hyperrun
