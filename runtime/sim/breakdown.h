// The breakdown of a device's step into parts. The parts add up to the step.
#pragma once

#include <span>

#include "runtime/base/units.h"
#include "runtime/ir/stats.h"
#include "runtime/sim/timed_program.h"

namespace hyperrun {

// Every moment belongs to the first part that applies: something computes; a collective whose group has met,
// or a message whose other side has come, is under way; a transfer is under way; else the device waits for
// others.
struct Breakdown {
  Nanos compute{};        // forward and backward, with the reading of what is computed on
  Nanos optimizer{};      // norm of the gradients, clipping, update
  Nanos communication{};  // exposed: collectives, messages between stages
  Nanos transfer{};       // exposed: transfers between tiers, and from other programs
  Nanos bubble{};         // waiting for other devices, or for nothing but its own order
  bool operator==(const Breakdown&) const = default;
};

// Breaks down a step that lasts until `end`. `spans` are of one device's instructions, `durations` of the
// Program's distinct collectives.
Breakdown break_down(const TimedProgram& timed, std::span<const Nanos> durations, std::span<const Span> spans,
                     Nanos end);

}  // namespace hyperrun
