#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/interval_map.h"
#include "runtime/ir/program.h"
#include "runtime/ir/row_counts.h"
#include "runtime/ir/tile_dependencies.h"

namespace hyperrun {
namespace {

using Clock =
    std::array<std::int32_t, kStreams>;  // the last instruction of each stream known to have finished

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

// Checks streams and events. Returns for each instruction the Clock that certainly has been reached before
// it.
std::vector<Clock> happens_before(const Program& program) {
  std::vector<Clock> before(program.instrs.size());
  Clock issued{};
  std::array<std::vector<std::size_t>, kStreams> where;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const auto label = [&] { return fmt::format("{} instruction {}", program.name, i); };
    HR_CHECK(instr.seq == issued[at(instr.stream)] + 1, label() + ": not in its stream's order");
    Clock clock{};
    if (instr.seq > 1) clock = before[where[at(instr.stream)].back()];
    clock[at(instr.stream)] = std::max(clock[at(instr.stream)], instr.seq - 1);
    for (const Event& e : instr.waits) {
      HR_CHECK(e.seq >= 1 && e.seq <= issued[at(e.stream)], label() + ": waits for what is not issued yet");
      const Clock& other = before[where[at(e.stream)][static_cast<std::size_t>(e.seq) - 1]];
      for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], other[s]);
      clock[at(e.stream)] = std::max(clock[at(e.stream)], e.seq);
    }
    before[i] = clock;
    where[at(instr.stream)].push_back(i);
    issued[at(instr.stream)] = instr.seq;
  }
  return before;
}

struct Access {
  std::size_t instr;
  bool write;
};

// Finds conflicting accesses to one byte that are not ordered. Different tiles of a buffer's rows do not
// conflict. A write that is ordered after all recorded accesses to some bytes replaces them.
class RaceDetector {
 public:
  RaceDetector(const Program& program, const std::vector<Clock>& before)
      : program_(program), before_(before) {}

  void touch(std::size_t i, const Operand& operand, bool write) {
    if (operand.bytes.value == 0) return;
    const std::int64_t begin = address(program_, operand);
    const auto now = static_cast<std::int64_t>(i) + 1;
    const auto range = accesses_.pieces(begin, begin + operand.bytes.value);
    for (auto piece = range.first; piece != range.second; ++piece) {
      piece->second.each_conflicting(operand, [&](const std::vector<Access>& met) {
        for (const Access& a : met)
          if ((write || a.write) && a.instr != i) check_ordered(a.instr, i);
      });
      if (!write)
        note_read(piece->second.of(operand, now), i);
      else if (!operand.tile.whole())
        piece->second.write(operand, now) = {{i, true}};
    }
    if (!write || !operand.tile.whole()) return;
    TileDependencies<std::vector<Access>> all;
    all.of(operand, now) = {{i, true}};
    accesses_.unite(range, std::move(all));
  }

 private:
  // Records only the last read of each stream, because it comes after the earlier ones.
  void note_read(std::vector<Access>& list, std::size_t i) const {
    const auto of_stream = std::ranges::find_if(list, [&](const Access& a) {
      return !a.write && program_.instrs[a.instr].stream == program_.instrs[i].stream;
    });
    of_stream == list.end() ? list.push_back({i, false}) : void(of_stream->instr = i);
  }

  void check_ordered(std::size_t earlier, std::size_t later) const {
    const Instr& e = program_.instrs[earlier];
    if (before_[later][at(e.stream)] >= e.seq) return;
    HR_CHECK(false,
             fmt::format("{}: instructions {} ({}) and {} ({}) race", program_.name, earlier,
                         std::string(name(e.op)), later, std::string(name(program_.instrs[later].op))));
  }

  const Program& program_;
  const std::vector<Clock>& before_;
  IntervalMap<TileDependencies<std::vector<Access>>> accesses_;  // by address
};

void verify_operands(const Program& program) {
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& operand, bool, bool) {
      const auto label = [&] { return fmt::format("{} instruction {}", program.name, i); };
      HR_CHECK(operand.buffer.valid() && operand.buffer.index() < program.buffers.size(), label());
      const Buffer& b = program[operand.buffer];
      HR_CHECK(operand.offset + operand.bytes <= b.bytes, label() + " runs over " + b.name);
      const RowTile& tile = operand.tile;
      HR_CHECK(tile.index >= 0 && tile.index < tile.count, label() + ": tile");
      HR_CHECK(tile.blocks == 0 || (tile.rows > 0 && operand.bytes.value % (tile.blocks * tile.rows) == 0),
               label() + ": blocks of rows");
      HR_CHECK(b.state || (b.first <= static_cast<int>(i) && static_cast<int>(i) <= b.last),
               label() + " uses " + b.name + " when it is not live");
    });
}

// Checks in the order of the instructions, which is itself legal: no buffer is read or added to before it is
// written, and outputs are written and still live at the end.
void verify_definitions(const Program& program) {
  std::vector<bool> written(program.buffers.size(), false);
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    each_use(program.instrs[i], [&](const Operand& operand, bool read, bool) {
      const Buffer& b = program[operand.buffer];
      HR_CHECK(!read || b.state || written[operand.buffer.index()],
               fmt::format("{} instruction {} reads {} before it is written", program.name, i, b.name));
    });
    each_use(program.instrs[i], [&](const Operand& operand, bool, bool write) {
      if (write) written[operand.buffer.index()] = true;
    });
  }
  for (const Output& output : program.outputs) {
    const Buffer& b = program[output.operand.buffer];
    HR_CHECK(b.state || written[output.operand.buffer.index()], "output " + output.name + " is not written");
    HR_CHECK(b.state || b.last + 1 >= static_cast<std::int32_t>(program.instrs.size()),
             "output " + output.name + " is gone at the end");
  }
}

void verify_placement(const Program& program, Tier tier) {
  struct Edge {
    std::int32_t when;
    bool begin;
    const Buffer* buffer;
  };
  std::vector<Edge> edges;
  const auto end = static_cast<std::int32_t>(program.instrs.size());
  for (const Buffer& b : program.buffers) {
    if (b.bytes.value == 0 || b.tier != tier) continue;
    edges.push_back({b.state ? -1 : b.first, true, &b});
    edges.push_back({b.state ? end : b.last + 1, false, &b});
    HR_CHECK(b.offset + b.bytes <= program.peak[index_of(tier)], b.name + " lies above the peak");
  }
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
    return x.when != y.when ? x.when < y.when : x.begin < y.begin;
  });
  std::map<std::int64_t, const Buffer*> live;
  for (const Edge& e : edges) {
    if (!e.begin) {
      live.erase(e.buffer->offset.value);
      continue;
    }
    auto next = live.lower_bound(e.buffer->offset.value);
    HR_CHECK(next == live.end() || next->first >= (e.buffer->offset + e.buffer->bytes).value,
             e.buffer->name + " overlaps " + (next == live.end() ? "" : next->second->name));
    HR_CHECK(next == live.begin() ||
                 (std::prev(next)->second->offset + std::prev(next)->second->bytes) <= e.buffer->offset,
             e.buffer->name + " overlaps its lower neighbour");
    live.emplace_hint(next, e.buffer->offset.value, e.buffer);
  }
}

// Only transfers touch lower tiers, and each moves between HBM and the tier that it names.
void verify_transfers(const Program& program) {
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const Tier tier = beyond_hbm(instr.op);
    const bool comes = std::holds_alternative<instr::Prefetch>(instr.op);
    const auto label = [&] { return fmt::format("{} instruction {}", program.name, i); };
    for (const auto* list : {&instr.in, &instr.out}) {
      const bool there = tier != Tier::kHbm && (list == &instr.in) == comes;
      for (const Operand& o : *list)
        HR_CHECK(program[o.buffer].tier == (there && &o == &list->front() ? tier : Tier::kHbm),
                 label() + " is not between its tiers");
    }
    if (tier == Tier::kHbm) continue;
    const std::size_t inputs = row_of_transfer(instr.op) > 0 ? 2 : 1;  // transfers of rows have counts too
    HR_CHECK(instr.in.size() == inputs && instr.out.size() == 1 && instr.in[0].bytes == instr.out[0].bytes &&
                 !instr.scratch.buffer.valid(),
             label() + " is no transfer");
    HR_CHECK(instr.stream == (comes ? StreamKind::kDmaIn : StreamKind::kDmaOut), label() + ": stream");
  }
}

}  // namespace

void verify(const Program& program) {
  verify_operands(program);
  verify_definitions(program);
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash}) verify_placement(program, tier);
  verify_transfers(program);
  const std::vector<Clock> before = happens_before(program);
  RaceDetector races(program, before);
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i], [&](const Operand& operand, bool read, bool write) {
      if (read) races.touch(i, operand, false);
      if (write) races.touch(i, operand, true);
    });
}

}  // namespace hyperrun
