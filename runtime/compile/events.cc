#include "runtime/compile/events.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/interval_map.h"
#include "runtime/ir/tile_dependencies.h"

namespace hyperrun {
namespace {

using Clock = std::array<std::int32_t, kStreams>;

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

void raise(Clock& clock, const Clock& to) {
  for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], to[s]);
}

// The last instruction of each stream that read and that wrote some bytes.
struct Touched {
  Clock read{}, written{};
};

class ByAddress {
 public:
  explicit ByAddress(const Program& program) : program_(program) {}

  using Piece = std::pair<const std::int64_t, TileDependencies<Touched>>;
  auto pieces(const Operand& operand) {
    const std::int64_t begin = address(program_, operand);
    return memory_.pieces(begin, begin + operand.bytes.value);
  }
  static TileDependencies<Touched>& known(Piece& piece) { return piece.second; }
  template <class Range>
  void unite(const Range& range, TileDependencies<Touched> all) {
    memory_.unite(range, std::move(all));
  }

 private:
  const Program& program_;
  IntervalMap<TileDependencies<Touched>> memory_;
};

class ByBuffer {
 public:
  explicit ByBuffer(const Program& program) : program_(program), memory_(program.buffers.size()) {}

  using Piece = TileDependencies<Touched>;
  std::pair<Piece*, Piece*> pieces(const Operand& operand) {
    HR_CHECK(operand.bytes == program_[operand.buffer].bytes, program_[operand.buffer].name);
    Piece* piece = &memory_[operand.buffer.index()];
    return {piece, piece + 1};
  }
  static Piece& known(Piece& piece) { return piece; }
  static void unite(const std::pair<Piece*, Piece*>& range, Piece all) { *range.first = std::move(all); }

 private:
  const Program& program_;
  std::vector<Piece> memory_;
};

// Returns what an access to an operand depends on, and records the access. Whoever waits for a write also
// waits for all that the write waited for; therefore a write replaces all earlier records.
template <class Memory>
Clock touch(Memory& memory, const Operand& operand, bool write, StreamKind stream, std::int32_t seq,
            std::int64_t now) {
  Clock needs{};
  if (operand.bytes.value == 0) return needs;
  const auto range = memory.pieces(operand);
  Touched written;
  written.written[at(stream)] = seq;
  for (auto piece = range.first; piece != range.second; ++piece) {
    TileDependencies<Touched>& known = Memory::known(*piece);
    known.each_conflicting(operand, [&](const Touched& met) {
      raise(needs, met.written);
      if (write) raise(needs, met.read);
    });
    if (!write)
      known.of(operand, now).read[at(stream)] = seq;
    else if (!operand.tile.whole())
      known.write(operand, now) = written;
  }
  if (write && operand.tile.whole()) {
    TileDependencies<Touched> all;
    all.of(operand, now) = written;
    memory.unite(range, std::move(all));
  }
  return needs;
}

template <class Memory>
void add_events_by(Program& program) {
  Memory memory(program);
  Clock issued{};
  // The instructions that have finished before an instruction starts, by its stream and number.
  std::array<std::vector<Clock>, kStreams> known;
  std::int64_t now = 0;
  for (Instr& instr : program.instrs) {
    ++now;
    const std::size_t own = at(instr.stream);
    instr.seq = ++issued[own];
    instr.waits.clear();
    Clock needs{};
    each_use(instr, [&](const Operand& operand, bool read, bool write) {
      if (read) raise(needs, touch(memory, operand, false, instr.stream, instr.seq, now));
      if (write) raise(needs, touch(memory, operand, true, instr.stream, instr.seq, now));
    });
    Clock before = known[own].empty() ? Clock{} : known[own].back();
    before[own] = instr.seq - 1;
    // A wait is left out if another one implies it: later events of a stream imply its earlier ones, and all
    // that those waited for.
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

}  // namespace

void add_events(Program& program) { add_events_by<ByAddress>(program); }

void add_events_apart(Program& program) { add_events_by<ByBuffer>(program); }

}  // namespace hyperrun
