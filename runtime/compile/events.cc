#include "runtime/compile/events.h"

#include <algorithm>

#include "runtime/base/interval_map.h"
#include "runtime/ir/shared_by_tiles.h"

namespace hyperrun {
namespace {

using Clock = std::array<std::int32_t, kStreams>;

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

void raise(Clock& clock, const Clock& to) {
  for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], to[s]);
}

// How far each stream has read and written something.
struct Touched {
  Clock read{}, written{};
};

using Memory = IntervalMap<SharedByTiles<Touched>>;  // by address

// What a touch of an operand that lies at `begin` depends on; and notes it. Who waits for a write waits for
// all that the write itself waited for, so that it takes the place of what was there.
Clock touch(Memory& memory, const Operand& operand, std::int64_t begin, bool write, StreamKind stream,
            std::int32_t seq, std::int64_t now) {
  Clock needs{};
  if (operand.bytes.value == 0) return needs;
  const auto range = memory.pieces(begin, begin + operand.bytes.value);
  Touched written;
  written.written[at(stream)] = seq;
  for (auto piece = range.first; piece != range.second; ++piece) {
    piece->second.each_met(operand, [&](const Touched& met) {
      raise(needs, met.written);
      if (write) raise(needs, met.read);
    });
    if (!write)
      piece->second.of(operand, now).read[at(stream)] = seq;
    else if (!operand.tile.whole())
      piece->second.write(operand, now) = written;
  }
  if (write && operand.tile.whole()) {
    SharedByTiles<Touched> all;
    all.of(operand, now) = written;
    memory.unite(range, std::move(all));
  }
  return needs;
}

}  // namespace

void add_events(Program& program) {
  Memory memory;
  Clock issued{};
  std::array<std::vector<Clock>, kStreams> known;  // of each stream: what has finished before its n-th
  std::int64_t now = 0;
  for (Instr& instr : program.instrs) {
    ++now;
    const std::size_t own = at(instr.stream);
    instr.seq = ++issued[own];
    instr.waits.clear();
    Clock needs{};
    each_use(instr, [&](const Operand& operand, bool read, bool write) {
      const std::int64_t begin = address(program, operand);
      if (read) raise(needs, touch(memory, operand, begin, false, instr.stream, instr.seq, now));
      if (write) raise(needs, touch(memory, operand, begin, true, instr.stream, instr.seq, now));
    });
    Clock before = known[own].empty() ? Clock{} : known[own].back();
    before[own] = instr.seq - 1;
    // Later events of one stream imply its earlier ones; what those waited for is implied as well.
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (s == own || needs[s] <= before[s]) continue;
      bool implied = false;
      for (std::size_t other = 0; other < kStreams && !implied; ++other)
        implied = other != s && other != own && needs[other] > before[other] &&
                  known[other][static_cast<std::size_t>(needs[other]) - 1][s] >= needs[s];
      if (!implied) instr.waits.push_back({static_cast<StreamKind>(s), needs[s]});
    }
    for (const Event& e : instr.waits) {
      raise(before, known[at(e.stream)][static_cast<std::size_t>(e.seq) - 1]);
      before[at(e.stream)] = std::max(before[at(e.stream)], e.seq);
    }
    known[own].push_back(before);
  }
}

}  // namespace hyperrun
