#include "runtime/offload/rehearsal.h"

#include <algorithm>
#include <array>
#include <utility>

#include "memory/delay_address_reuse.h"
#include "runtime/base/error.h"
#include "runtime/base/interval_map.h"

namespace hyperrun {
namespace {

using Touch = Rehearsal::Touch;

// The order of what apply() makes of absences. Stays in HBM are numbered: those that nothing is before as
// their buffers are, the one behind the k-th absence is as many buffers and k further, and then come those of
// what a remake makes besides.
class Script {
 public:
  Script(const Rehearsal& r, const Absences& absences)
      : r_(r),
        n_(static_cast<std::int32_t>(r.program().instrs.size())),
        buffers_(static_cast<std::int32_t>(r.program().buffers.size())),
        list_(absences.list),
        before_(list_.size()),
        behind_(list_.size()),
        first_before_(static_cast<std::size_t>(n_) + 1),
        first_behind_(static_cast<std::size_t>(n_) + 1) {
    decide(absences.homes);
    sort();
  }

  std::int32_t asides_from() const { return buffers_ + static_cast<std::int32_t>(list_.size()); }
  std::int32_t buffer_of(std::int32_t stay) const {
    return stay < buffers_ ? stay : list_[static_cast<std::size_t>(stay - buffers_)].buffer;
  }

  // step(stream, lasts, own instruction or -1, list of (stay, buffer, Touch)); of a transfer the buffer
  // beyond is the touch of no stay: -1.
  void play(auto&& step) const;

  struct Operand {
    std::int32_t stay;  // -1: beyond HBM
    Touch touch;
  };

 private:
  enum class Act : std::uint8_t { kNothing, kFetch, kRemake };
  struct Acts {
    Act returns = Act::kNothing;
    bool stores = false;
  };

  void decide(const std::vector<std::int32_t>& homes) {
    std::int32_t buffer = -1, since = 0;
    bool home = false, dirty = false;
    for (const Absence& a : list_) {
      if (a.buffer != buffer) {
        buffer = a.buffer, since = 0, dirty = false;
        home = std::ranges::binary_search(homes, buffer);
      }
      const std::vector<Access>& accesses = r_.uses()[static_cast<std::size_t>(buffer)].accesses;
      for (; since <= a.after; ++since) dirty = dirty || accesses[static_cast<std::size_t>(since)].writes;
      const bool again = a.after + 1 < std::ssize(accesses);
      const bool needed = again ? accesses[static_cast<std::size_t>(a.after) + 1].reads : home;
      Acts& acts = acts_.emplace_back();
      acts.stores = a.after >= 0 && dirty && needed && a.maker < 0;
      if (acts.stores) dirty = false;
      if (again && a.maker >= 0) acts.returns = Act::kRemake;
      if (again && a.maker < 0 && needed) acts.returns = Act::kFetch;
    }
  }

  // By the instructions that they come before and behind; what comes back at one moment by when it is needed.
  void sort() {
    const auto back = [&](const Absence& a) { return static_cast<std::size_t>(std::max(a.returns, 0)); };
    const auto gone = [&](const Absence& a) { return static_cast<std::size_t>(a.leaves); };
    for (std::size_t k = 0; k < list_.size(); ++k) {
      ++first_before_[back(list_[k])];
      if (acts_[k].stores) ++first_behind_[gone(list_[k])];
    }
    for (auto* first : {&first_before_, &first_behind_}) {
      std::int32_t sum = 0;
      for (std::int32_t& f : *first) f = sum += f;
    }
    for (std::size_t k = list_.size(); k-- > 0;) {
      before_[static_cast<std::size_t>(--first_before_[back(list_[k])])] = static_cast<std::int32_t>(k);
      if (acts_[k].stores)
        behind_[static_cast<std::size_t>(--first_behind_[gone(list_[k])])] = static_cast<std::int32_t>(k);
    }
    const auto needed = [&](std::int32_t k) {
      const Absence& a = list_[static_cast<std::size_t>(k)];
      return r_.uses()[static_cast<std::size_t>(a.buffer)]
          .accesses[static_cast<std::size_t>(a.after) + 1]
          .instr;
    };
    for (std::int32_t i = 0; i < n_; ++i)
      std::ranges::stable_sort(before_.begin() + first_before_[static_cast<std::size_t>(i)],
                               before_.begin() + first_before_[static_cast<std::size_t>(i) + 1], {}, needed);
  }

  static std::span<const std::int32_t> at(const std::vector<std::int32_t>& list,
                                          const std::vector<std::int32_t>& first, std::int32_t i) {
    const auto from = static_cast<std::size_t>(first[static_cast<std::size_t>(i)]),
               to = static_cast<std::size_t>(first[static_cast<std::size_t>(i) + 1]);
    return std::span(list).subspan(from, to - from);
  }

  Touch all_of(std::int32_t buffer, bool read) const {
    return {buffer, 0, static_cast<std::int32_t>(r_.cuts(buffer).size()) - 1, read, !read};
  }

  const Rehearsal& r_;
  std::int32_t n_, buffers_;
  const std::vector<Absence>& list_;
  std::vector<Acts> acts_;                                 // by absence
  std::vector<std::int32_t> before_, behind_;              // absences
  std::vector<std::int32_t> first_before_, first_behind_;  // by instruction: in these
};

void Script::play(auto&& step) const {
  std::vector<std::int32_t> stay(static_cast<std::size_t>(buffers_));
  for (std::int32_t b = 0; b < buffers_; ++b) stay[static_cast<std::size_t>(b)] = b;
  std::int32_t aside = asides_from();
  std::vector<Operand> operands;
  std::vector<std::int32_t> remakes;
  const auto transfer = [&](std::int32_t k, bool store) {
    const std::int32_t b = list_[static_cast<std::size_t>(k)].buffer;
    operands = {{stay[static_cast<std::size_t>(b)], all_of(b, store)}, {-1, all_of(b, !store)}};
    if (!store) std::swap(operands[0], operands[1]);
    step(store ? StreamKind::kDmaOut : StreamKind::kDmaIn, r_.transfer(b), -1, operands);
  };
  for (std::int32_t i = 0; i < n_; ++i) {
    const Instr& instr = r_.program().instrs[static_cast<std::size_t>(i)];
    const std::span<const std::int32_t> back = at(before_, first_before_, i);
    for (const std::int32_t k : back)
      stay[static_cast<std::size_t>(list_[static_cast<std::size_t>(k)].buffer)] = buffers_ + k;
    remakes.clear();
    for (const std::int32_t k : back) {
      const Act act = acts_[static_cast<std::size_t>(k)].returns;
      if (act == Act::kFetch) transfer(k, false);
      if (act == Act::kRemake) remakes.push_back(k);
    }
    std::ranges::stable_sort(remakes, {},
                             [&](std::int32_t k) { return list_[static_cast<std::size_t>(k)].maker; });
    for (const std::int32_t k : remakes) {
      const Absence& a = list_[static_cast<std::size_t>(k)];
      operands.clear();
      for (const Touch& t : r_.touches(a.maker)) {
        const bool kept = !t.write || t.buffer == a.buffer;
        operands.push_back({kept ? stay[static_cast<std::size_t>(t.buffer)] : aside++, t});
      }
      step(r_.program().instrs[static_cast<std::size_t>(a.maker)].stream, r_.duration(a.maker), -1, operands);
    }
    operands.clear();
    for (const Touch& t : r_.touches(i)) operands.push_back({stay[static_cast<std::size_t>(t.buffer)], t});
    step(instr.stream, r_.duration(i), i, operands);
    for (const std::int32_t k : at(behind_, first_behind_, i)) transfer(k, true);
  }
}

// When each stay lives, and where it lies.
class Stays {
 public:
  Stays(const Rehearsal& r, const Script& script) : r_(r) {
    const auto all = static_cast<std::size_t>(script.asides_from());
    lives_.resize(all, {-1, -1});
    beyond_.resize(r.program().buffers.size(), {-1, -1});
    buffer_.resize(all);
    for (std::size_t s = 0; s < all; ++s) buffer_[s] = script.buffer_of(static_cast<std::int32_t>(s));
    std::vector<std::pair<std::int32_t, std::int32_t>> sent;  // at which step, which stay
    script.play([&](StreamKind stream, Nanos, std::int32_t, const std::vector<Script::Operand>& operands) {
      for (const Script::Operand& o : operands) live(o);
      if (stream == StreamKind::kSend) sent.emplace_back(steps_, operands[0].stay);
      ++steps_;
    });
    // As place_buffers() has it: what is sent lies there until the next message is.
    std::int32_t until = steps_ - 1;
    for (auto s = sent.rbegin(); s != sent.rend(); ++s) {
      std::int32_t& last = lives_[static_cast<std::size_t>(s->second)].last;
      last = std::max(last, until);
      until = s->first;
    }
    for (const Output& output : r.program().outputs) lives_[output.operand.buffer.index()].last = steps_ - 1;
  }

  // State has its place for itself: in HBM, or, where its home is beyond, there.
  void leave_out_state(const Absences& absences) {
    const std::vector<Buffer>& buffers = r_.program().buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const bool home = std::ranges::binary_search(absences.homes, static_cast<std::int32_t>(b));
      if (buffers[b].state && !home) lives_[b].first = -1;
      if (home) beyond_[b].first = -1;
    }
  }

  Bytes most_live() const {
    std::vector<std::int64_t> change(static_cast<std::size_t>(steps_) + 1);
    for (std::size_t s = 0; s < lives_.size(); ++s) {
      if (lives_[s].first < 0) continue;
      const std::int64_t bytes = (bytes_of(s).value + 63) / 64 * 64;
      change[static_cast<std::size_t>(lives_[s].first)] += bytes;
      change[static_cast<std::size_t>(lives_[s].last) + 1] -= bytes;
    }
    std::int64_t live = 0, most = 0;
    for (const std::int64_t c : change) most = std::max(most, live += c);
    return Bytes(most);
  }

  // Returns the end of the highest.
  Bytes place(Bytes enough) {
    const auto bytes = [&](std::size_t s) { return bytes_of(s); };
    return place(lives_, bytes, Bytes(64), enough, offsets_);
  }
  Bytes place_beyond(Bytes alignment) {
    const auto bytes = [&](std::size_t b) { return r_.program().buffers[b].bytes; };
    return place(beyond_, bytes, alignment, Bytes(0), offsets_beyond_);
  }

  std::size_t size() const { return lives_.size(); }
  std::int32_t buffer(std::size_t stay) const { return buffer_[stay]; }
  // -1: it has a place for itself.
  std::int64_t offset(std::size_t stay) const { return offsets_[stay]; }
  std::int64_t offset_beyond(std::size_t buffer) const { return offsets_beyond_[buffer]; }

 private:
  struct Life {
    std::int32_t first, last;
  };

  void live(const Script::Operand& o) {
    const auto s = static_cast<std::size_t>(o.stay);
    if (o.stay >= 0 && s == lives_.size()) lives_.push_back({-1, -1}), buffer_.push_back(o.touch.buffer);
    Life& life = o.stay < 0 ? beyond_[static_cast<std::size_t>(o.touch.buffer)] : lives_[s];
    if (life.first < 0) life.first = steps_;
    life.last = steps_;
  }

  Bytes place(const std::vector<Life>& lives, auto bytes, Bytes alignment, Bytes enough,
              std::vector<std::int64_t>& offsets) const {
    std::vector<Lifetime> lifetimes;
    for (std::size_t s = 0; s < lives.size(); ++s)
      if (lives[s].first >= 0) lifetimes.push_back({lives[s].first, lives[s].last, bytes(s)});
    Assignment assignment = assign_offsets(lifetimes, alignment, enough, r_.most_pairs());
    delay_address_reuse(lifetimes, assignment, alignment);
    offsets.assign(lives.size(), -1);
    Bytes peak{};
    for (std::size_t s = 0, k = 0; s < lives.size(); ++s) {
      if (lives[s].first < 0) continue;
      offsets[s] = assignment.offsets[k].value;
      peak = std::max(peak, assignment.offsets[k] + lifetimes[k].bytes);
      ++k;
    }
    return peak;
  }

  Bytes bytes_of(std::size_t s) const {
    return r_.program().buffers[static_cast<std::size_t>(buffer_[s])].bytes;
  }

  const Rehearsal& r_;
  std::vector<Life> lives_;           // by stay
  std::vector<std::int32_t> buffer_;  // by stay
  std::vector<Life> beyond_;          // by buffer
  std::vector<std::int64_t> offsets_, offsets_beyond_;
  std::int32_t steps_ = 0;
};

// In-order streams; what reads waits for what wrote the same bytes, what writes for all that used them, by
// address: a place that is used again waits for its former tenant.
class Clocks {
 public:
  Clocks(const Rehearsal& r, const Stays& stays)
      : r_(r), stays_(stays), cell_(stays.size(), -1), beyond_(r.program().buffers.size(), -1), cells_(1) {}

  Timeline run(const Script& script) {
    script.play(
        [&](StreamKind stream, Nanos lasts, std::int32_t own, const std::vector<Script::Operand>& operands) {
          std::int64_t& free = free_[static_cast<std::size_t>(stream)];
          std::int64_t begin = free;
          for (const Script::Operand& o : operands)
            for (const Cell& c : cells(o)) begin = std::max(begin, o.touch.write ? c.used : c.written);
          free = begin + lasts.value;
          for (const Script::Operand& o : operands)
            for (Cell& c : cells(o)) {
              c.used = std::max(c.used, free);
              if (o.touch.write) c.written = std::max(c.written, free);
            }
          own >= 0 ? timeline_.add(begin, free) : timeline_.last_until(free);
        });
    return std::move(timeline_);
  }

 private:
  struct Cell {
    std::int64_t written = 0, used = 0;  // until
  };

  std::span<Cell> cells(const Script::Operand& o) {
    const bool beyond = o.stay < 0;
    const auto of = static_cast<std::size_t>(beyond ? o.touch.buffer : o.stay);
    std::int32_t& first = beyond ? beyond_[of] : cell_[of];
    if (first < 0) {
      first = static_cast<std::int32_t>(cells_.size());
      const std::int64_t offset = beyond ? stays_.offset_beyond(of) : stays_.offset(of);
      move_in(beyond ? tenants_beyond_ : tenants_, offset, r_.cuts(o.touch.buffer));
    }
    return std::span(cells_).subspan(static_cast<std::size_t>(first + o.touch.cell),
                                     static_cast<std::size_t>(o.touch.cells));
  }

  // Its cells know until when the former tenants of their addresses were used: those are gone.
  void move_in(IntervalMap<std::int32_t>& tenants, std::int64_t offset, std::span<const std::int64_t> cuts) {
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      Cell cell;
      if (offset >= 0) {
        const auto former = tenants.pieces(offset + cuts[c], offset + cuts[c + 1]);
        for (auto piece = former.first; piece != former.second; ++piece) {
          const Cell& old = cells_[static_cast<std::size_t>(piece->second)];
          cell = {std::max(cell.written, old.written), std::max(cell.used, old.used)};
        }
        tenants.unite(former, static_cast<std::int32_t>(cells_.size()));
      }
      cells_.push_back(cell);
    }
  }

  const Rehearsal& r_;
  const Stays& stays_;
  std::vector<std::int32_t> cell_, beyond_;  // by stay and by buffer: its first; -1: it has not begun
  std::vector<Cell> cells_;                  // the first: of addresses that nobody has used
  IntervalMap<std::int32_t> tenants_, tenants_beyond_;  // by address: cells
  std::array<std::int64_t, kStreams> free_{};
  Timeline timeline_;
};

}  // namespace

Rehearsal::Rehearsal(const Program& program, const std::vector<BufferUses>& uses,
                     std::vector<Nanos> durations, const std::function<Nanos(Bytes)>& transfer,
                     Bytes alignment_beyond, std::int64_t most_pairs)
    : program_(program),
      uses_(uses),
      durations_(std::move(durations)),
      alignment_beyond_(alignment_beyond),
      most_pairs_(most_pairs) {
  for (const Buffer& b : program.buffers) transfers_.push_back(transfer(b.bytes - b.empty));
  cut_buffers();
  note_touches();
}

void Rehearsal::cut_buffers() {
  std::vector<std::pair<std::int32_t, std::int64_t>> list;
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
    list.emplace_back(b, 0);
    if (program_.buffers[b].bytes.value > 0) list.emplace_back(b, program_.buffers[b].bytes.value);
  }
  const std::size_t whole = list.size();
  for (const Instr& instr : program_.instrs)
    each_use(instr, [&](const Operand& o, bool, bool) {
      if (o.bytes == program_[o.buffer].bytes) return;
      for (const Bytes at : {o.offset, o.offset + o.bytes}) list.emplace_back(o.buffer.value, at.value);
    });
  if (list.size() > whole) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
  }
  cut_.assign(program_.buffers.size() + 1, 0);
  for (const auto& [b, at] : list) ++cut_[static_cast<std::size_t>(b) + 1], cuts_.push_back(at);
  for (std::size_t b = 0; b < program_.buffers.size(); ++b) cut_[b + 1] += cut_[b];
}

void Rehearsal::note_touches() {
  for (const Instr& instr : program_.instrs) {
    touched_.push_back(static_cast<std::int32_t>(touches_.size()));
    each_use(instr, [&](const Operand& o, bool read, bool write) {
      const std::span<const std::int64_t> list = cuts(static_cast<std::int32_t>(o.buffer.value));
      const auto at = [&](Bytes where) {
        return static_cast<std::int32_t>(std::ranges::lower_bound(list, where.value) - list.begin());
      };
      const std::int32_t first = at(o.offset), last = at(o.offset + o.bytes);
      touches_.push_back({static_cast<std::int32_t>(o.buffer.value), first, last - first, read, write});
    });
  }
  touched_.push_back(static_cast<std::int32_t>(touches_.size()));
}

Rehearsal::Outcome Rehearsal::of(const Absences& absences, Bytes state, Bytes budget) const {
  const Script script(*this, absences);
  Stays stays(*this, script);
  stays.leave_out_state(absences);
  if (const Bytes live = state + stays.most_live(); live > budget) return {live, {}, {}};
  const Bytes peak = state + stays.place(budget > state ? budget - state : Bytes(0));
  if (peak > budget) return {peak, {}, {}};
  const Bytes beyond = stays.place_beyond(alignment_beyond_);
  return {peak, Clocks(*this, stays).run(script), beyond};
}

bool Rehearsal::fits(const Absences& absences, Bytes state, Bytes budget) const {
  const Script script(*this, absences);
  Stays stays(*this, script);
  stays.leave_out_state(absences);
  return state + stays.most_live() <= budget && state + stays.place(budget - state) <= budget;
}

Rehearsal::Outcome Rehearsal::lowest(const Absences& absences, Bytes state) const {
  const Script script(*this, absences);
  Stays stays(*this, script);
  stays.leave_out_state(absences);
  const Bytes peak = state + stays.place(Bytes(0)), beyond = stays.place_beyond(alignment_beyond_);
  return {peak, Clocks(*this, stays).run(script), beyond};
}

}  // namespace hyperrun
