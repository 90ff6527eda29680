// When the instructions of a Program run, those that compute and communicate.
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
  std::int64_t length = 0;

  // The first instruction that begins no sooner than `time`, from `from` on; the number of instructions where
  // there is none.
  std::int32_t first_from(std::int64_t time, std::int32_t from) const;
  // The last that has begun by `time`, up to `to`.
  std::int32_t last_by(std::int64_t time, std::int32_t to) const;

  void add(std::int64_t begin, std::int64_t end);  // of the next instruction
  void last_until(std::int64_t time) { length = std::max(length, time); }

 private:
  std::vector<std::int64_t> begun_;  // the latest beginning up to an instruction: ascending
};

// Of one without places and events: if nothing had to be moved. In-order streams; what reads waits for what
// wrote, what writes for what used. Messages come at once.
Timeline timeline_of(const Program& program, std::span<const Nanos> durations);

// Of one with places and events, on a device that has to wait for nobody else; of the instructions that it
// had before others were put between them (`where`, of apply()), which take their time as well.
Timeline timeline_as_placed(const Program& program, std::span<const Nanos> durations,
                            std::span<const std::int32_t> where);

}  // namespace hyperrun
