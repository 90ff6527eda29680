// When the instructions of a Program would run if nothing had to be moved.
#pragma once

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

 private:
  friend Timeline timeline_of(const Program&, std::span<const Nanos>);
  std::vector<std::int64_t> begun_;  // the latest beginning up to an instruction: ascending
};

// In-order streams; what reads waits for what wrote, what writes for what used. Messages come at once.
Timeline timeline_of(const Program& program, std::span<const Nanos> durations);

// How long a Program with places and events takes a device for which nobody else has to be waited.
std::int64_t length_of(const Program& program, std::span<const Nanos> durations);

}  // namespace hyperrun
