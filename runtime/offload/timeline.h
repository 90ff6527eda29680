// When each instruction of a Program runs, as estimated from durations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct Timeline {
  std::vector<std::int64_t> begin, end;  // ns, by instruction
  std::int64_t length = 0;               // ns

  // The first instruction from `from` on that begins at `time` or later; the number of instructions if there
  // is none.
  std::int32_t first_from(std::int64_t time, std::int32_t from) const;
  // The last instruction up to `to` that has begun by `time`.
  std::int32_t last_by(std::int64_t time, std::int32_t to) const;

  // Appends the next instruction.
  void add(std::int64_t begin, std::int64_t end);
  void last_until(std::int64_t time) { length = std::max(length, time); }

 private:
  std::vector<std::int64_t> begun_;  // running maximum of `begin`, so that it is sorted
};

// The times of a Program without offsets and events, as if nothing had to be moved. Streams run in order. A
// read waits for the last write, a write for all earlier uses. Messages arrive at once.
Timeline timeline_of(const Program& program, std::span<const Nanos> durations);

// The times of a placed Program with events, on a device that waits for no other. The Timeline lists only the
// original instructions, at positions `where` (the result of apply()). Inserted instructions take time too.
Timeline timeline_as_placed(const Program& program, std::span<const Nanos> durations,
                            std::span<const std::int32_t> where);

}  // namespace hyperrun
