#include "runtime/offload/timeline.h"

#include <algorithm>
#include <array>

#include "runtime/ir/tile_dependencies.h"

namespace hyperrun {

std::int32_t Timeline::first_from(std::int64_t time, std::int32_t from) const {
  const auto at = std::lower_bound(begun_.begin() + from, begun_.end(), time);
  return static_cast<std::int32_t>(at - begun_.begin());
}

std::int32_t Timeline::last_by(std::int64_t time, std::int32_t to) const {
  const auto behind = std::upper_bound(begun_.begin(), begun_.begin() + to + 1, time);
  return static_cast<std::int32_t>(behind - begun_.begin()) - 1;
}

void Timeline::add(std::int64_t from, std::int64_t to) {
  begin.push_back(from);
  end.push_back(to);
  begun_.push_back(std::max(from, begun_.empty() ? 0 : begun_.back()));
  length = std::max(length, to);
}

Timeline timeline_of(const Program& program, std::span<const Nanos> durations) {
  struct Last {
    std::int64_t written = 0, used = 0;  // ns: end of the last write and of the last use
  };
  std::vector<TileDependencies<Last>> last(program.buffers.size());
  std::array<std::int64_t, kStreams> free{};
  Timeline t;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    std::int64_t begin = free[static_cast<std::size_t>(instr.stream)];
    each_use(instr, [&](const Operand& o, bool read, bool write) {
      last[o.buffer.index()].each_conflicting(o, [&](const Last& l) {
        if (read) begin = std::max(begin, l.written);
        if (write) begin = std::max(begin, l.used);
      });
    });
    const std::int64_t end = begin + durations[i].value;
    each_use(instr, [&](const Operand& o, bool, bool write) {
      Last& l = last[o.buffer.index()].of(o);
      l.used = std::max(l.used, end);
      if (write) l.written = std::max(l.written, end);
    });
    free[static_cast<std::size_t>(instr.stream)] = end;
    t.add(begin, end);
  }
  return t;
}

Timeline timeline_as_placed(const Program& program, std::span<const Nanos> durations,
                            std::span<const std::int32_t> where) {
  std::array<std::vector<std::int64_t>, kStreams> ends;  // by stream, of its instructions
  Timeline t;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    std::vector<std::int64_t>& own = ends[static_cast<std::size_t>(instr.stream)];
    std::int64_t begin = own.empty() ? 0 : own.back();
    for (const Event& e : instr.waits)
      begin = std::max(begin, ends[static_cast<std::size_t>(e.stream)][static_cast<std::size_t>(e.seq) - 1]);
    own.push_back(begin + durations[i].value);
    const bool is_next =
        t.begin.size() < where.size() && where[t.begin.size()] == static_cast<std::int32_t>(i);
    if (is_next)
      t.add(begin, own.back());
    else
      t.length = std::max(t.length, own.back());
  }
  return t;
}

}  // namespace hyperrun
