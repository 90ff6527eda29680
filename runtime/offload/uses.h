// When a Program uses each of its buffers, and what a buffer does between two uses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// An instruction's use of a buffer, all of its operands there together.
struct Access {
  std::int32_t instr = 0;
  bool reads = false;  // also where it leaves bytes as they are
  bool writes = false;
  // A message comes here, nobody knows when: it stays until it is used. A Store that waited for it would
  // stand between the device and what the message's sender waits for.
  bool arrives = false;
};

struct BufferUses {
  std::vector<Access> accesses;  // by instruction, ascending
  bool movable = false;          // may leave HBM between two of them
};

// `movable`: categories that may leave HBM. What is reported at the end, and what is smaller than a cache
// line, stays. So do the counts of rows of experts: a transfer of the rows reads them, so whatever uses the
// rows is an access of the counts as well.
std::vector<BufferUses> uses_of_buffers(const Program& program, std::span<const Category> movable);

// A stay beyond HBM. Behind access `after` of the buffer (-1: none is before it) it leaves HBM, once
// instruction `leaves` has been issued (at or behind that access; -1: before the first), and is back before
// instruction `returns` (at or before the next access; as many as there are instructions: not again).
struct Absence {
  std::int32_t buffer = 0, after = 0;
  std::int32_t leaves = 0, returns = 0;
  // The instruction that is done again for it to be back; -1: its bytes are fetched. Then it was nowhere.
  std::int32_t maker = -1;
  bool operator==(const Absence&) const = default;
};

// What is decided for one Program.
struct Absences {
  std::vector<Absence> list;        // of a buffer, ascending
  std::vector<std::int32_t> homes;  // state that lies beyond HBM between invocations: buffers, ascending
  bool operator==(const Absences&) const = default;
};

}  // namespace hyperrun
