// What an invocation of a Program did on one device: filled by the executor and by the simulator, shipped
// to the controller, and written to traces and reports.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

using CategoryBytes = std::array<Bytes, kCategories>;

// The collectives of one kind along the same axes; of "prefetch" and "store" the tier stands for the axes.
struct TrafficKind {
  std::string collective, axes;
  bool operator==(const TrafficKind&) const = default;
};

// Of a Prefetch or a Store.
TrafficKind transfer_kind(const InstrOp& op);

// When an instruction ran: nanoseconds of std::chrono::steady_clock.
struct Span {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

struct Traffic {
  TrafficKind kind;
  std::int64_t count = 0;
  Bytes bytes{};      // that this device moved
  Bytes elsewhere{};  // of them, to or from another host's part of the pool, which simulations do not know
  bool operator==(const Traffic&) const = default;
};

// Of communication of one kind: how long the device was at it, and how much of that neither cube nor vector
// computed.
struct UnderWay {
  Nanos time{}, exposed{};
  bool operator==(const UnderWay&) const = default;
};

// (time, bytes) after each change.
using Curve = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct InvocationStats {
  std::int64_t begin = 0, end = 0;  // steady_clock, ns
  std::array<Nanos, kStreams> busy{};
  Nanos exposed{};  // time in which compute stood waiting for communication
  std::vector<Traffic> traffic;
  std::vector<UnderWay> under_way;  // by kind of `traffic`; empty: streams had no threads of their own
  TierBytes high_water{};           // end of the highest byte touched so far in the run
  Bytes live_peak{};  // the most that lived at once: as it happened, in a simulation as planned (peak_use)
  CategoryBytes live_at_peak{};
  std::vector<Span> spans;           // one an instruction
  std::array<Curve, kTiers> live{};  // bytes that live, by tier; when traced
  bool operator==(const InvocationStats&) const = default;
};

}  // namespace hyperrun
