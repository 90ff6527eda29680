#include "runtime/compile/events.h"

#include <algorithm>
#include <map>

namespace hyperrun {
namespace {

using Clock = std::array<std::int32_t, kStreams>;

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

void raise(Clock& clock, const Clock& to) {
  for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], to[s]);
}

// Per segment of addresses: how far each stream has read and written it.
class Segments {
 public:
  struct Touched {
    Clock read{}, written{};
  };

  // What a touch of [begin, end) depends on; and notes it. Who waits for a write waits for all that the
  // write itself waited for, so that it takes the place of what was there.
  Clock touch(std::int64_t begin, std::int64_t end, bool write, StreamKind stream, std::int32_t seq) {
    Clock needs{};
    if (begin == end) return needs;
    split(begin);
    split(end);
    const auto first = segments_.find(begin);
    auto it = first;
    for (; it != segments_.end() && it->first < end; ++it) {
      raise(needs, it->second.written);
      if (write) raise(needs, it->second.read);
      if (!write) it->second.read[at(stream)] = seq;
    }
    if (!write) return needs;
    segments_.erase(std::next(first), it);
    first->second = {};
    first->second.written[at(stream)] = seq;
    return needs;
  }

 private:
  void split(std::int64_t address) {
    auto next = segments_.lower_bound(address);
    if (next != segments_.end() && next->first == address) return;
    segments_.emplace_hint(next, address, next == segments_.begin() ? Touched{} : std::prev(next)->second);
  }

  std::map<std::int64_t, Touched> segments_;
};

}  // namespace

void add_events(Program& program) {
  Segments segments;
  Clock issued{};
  std::array<std::vector<Clock>, kStreams> known;  // of each stream: what has finished before its n-th
  for (Instr& instr : program.instrs) {
    const std::size_t own = at(instr.stream);
    instr.seq = ++issued[own];
    instr.waits.clear();
    Clock needs{};
    for (const Use& use : uses(instr)) {
      const std::int64_t begin = address(program, use.operand);
      const std::int64_t end = begin + use.operand.bytes.value;
      if (use.read) raise(needs, segments.touch(begin, end, false, instr.stream, instr.seq));
      if (use.write) raise(needs, segments.touch(begin, end, true, instr.stream, instr.seq));
    }
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
