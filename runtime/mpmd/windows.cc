#include "runtime/mpmd/windows.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/ir/tile_dependencies.h"

namespace hyperrun {
namespace {

// The last uses of a buffer, or of a tile of its rows.
struct Touches {
  std::int32_t written = -1;        // the last writer
  std::vector<std::int32_t> reads;  // readers since then
};

class Dependencies {
 public:
  explicit Dependencies(const Program& program) : buffers_(program.buffers.size()) {
    after_.reserve(program.instrs.size());
    for (const Instr& instr : program.instrs) add(instr);
  }
  std::vector<std::vector<std::int32_t>> take() { return std::move(after_); }

 private:
  void add(const Instr& instr) {
    const auto self = static_cast<std::int32_t>(after_.size());
    std::vector<std::int32_t> list;
    each_use(instr, [&](const Operand& o, bool, bool write) {
      buffers_[o.buffer.index()].each_conflicting(o, [&](const Touches& met) {
        if (met.written >= 0) list.push_back(met.written);
        if (write) list.insert(list.end(), met.reads.begin(), met.reads.end());
      });
    });
    each_use(instr, [&](const Operand& o, bool read, bool) {
      if (read) buffers_[o.buffer.index()].of(o).reads.push_back(self);
    });
    each_use(instr, [&](const Operand& o, bool, bool write) {
      if (write) note_write(o, self);
    });
    if (instr.stream == StreamKind::kSend || instr.stream == StreamKind::kRecv) {
      std::int32_t& last = last_message_[instr.stream == StreamKind::kSend ? 0 : 1];
      if (last >= 0) list.push_back(last);
      last = self;
    }
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    std::erase(list, self);
    after_.push_back(std::move(list));
  }

  void note_write(const Operand& o, std::int32_t self) {
    TileDependencies<Touches>& buffer = buffers_[o.buffer.index()];
    if (o.tile.whole()) buffer = {};
    buffer.of(o) = {self, {}};
  }

  std::vector<TileDependencies<Touches>> buffers_;
  std::vector<std::vector<std::int32_t>> after_;
  std::int32_t last_message_[2] = {-1, -1};
};

const instr::Collective* exchange_of_tile(const Instr& instr) {
  const auto* c = std::get_if<instr::Collective>(&instr.op);
  const bool is = c != nullptr && c->kind == instr::CollectiveKind::kAllToAllV && !tile_of(instr).whole();
  return is ? c : nullptr;
}

// Nothing may move past the instruction.
bool is_border(const Instr& instr) {
  return instr.stream == StreamKind::kSend || instr.stream == StreamKind::kRecv || loads_tokens(instr.op);
}

class Windows {
 public:
  Windows(const Program& program, std::span<const std::vector<std::int32_t>> after)
      : instrs_(program.instrs), after_(after) {}

  std::vector<Window> run() {
    std::vector<Window> list;
    std::int32_t begin = 0;
    for (std::int32_t i = 0; i < size(); ++i) {
      if (is_border(at(i))) begin = i + 1;
      const instr::Collective* c = exchange_of_tile(at(i));
      if (c == nullptr) continue;
      const std::int32_t first = i, back = last_return(i);
      const std::int32_t end = with_followers(first, back + 1);
      list.push_back({begin, end});
      i = end - 1;
      begin = end;
    }
    return list;
  }

 private:
  std::int32_t size() const { return static_cast<std::int32_t>(instrs_.size()); }
  const Instr& at(std::int32_t i) const { return instrs_[static_cast<std::size_t>(i)]; }

  // The last exchange of the pair that begins at `first`, before the next border.
  std::int32_t last_return(std::int32_t first) const {
    std::int32_t last = first;
    bool is_back = false;
    for (std::int32_t i = first; i < size() && !is_border(at(i)); ++i) {
      const instr::Collective* c = exchange_of_tile(at(i));
      if (c == nullptr) continue;
      if (is_back && !c->back) break;
      is_back = c->back;
      last = i;
    }
    return last;
  }

  // The end of the window: behind the last instruction before the next pair that does not depend on this one.
  std::int32_t with_followers(std::int32_t first, std::int32_t end) const {
    std::vector<bool> depends(static_cast<std::size_t>(end - first), true);
    const Pass pass = at(first).pass;
    std::int32_t last = end;
    for (std::int32_t i = end; i < size(); ++i) {
      const Instr& instr = at(i);
      if (is_border(instr) || exchange_of_tile(instr) != nullptr) break;
      if (instr.pass != pass && instr.stream != StreamKind::kComm) break;
      depends.push_back(std::ranges::any_of(after_[static_cast<std::size_t>(i)], [&](std::int32_t before) {
        return before >= first && depends[static_cast<std::size_t>(before - first)];
      }));
      if (!depends.back()) last = i + 1;
    }
    return last;
  }

  const std::vector<Instr>& instrs_;
  std::span<const std::vector<std::int32_t>> after_;
};

}  // namespace

std::vector<std::vector<std::int32_t>> dependencies(const Program& program) {
  return Dependencies(program).take();
}

std::vector<Window> windows(const Program& program, std::span<const std::vector<std::int32_t>> after) {
  return Windows(program, after).run();
}

}  // namespace hyperrun
