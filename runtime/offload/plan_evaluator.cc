#include "runtime/offload/plan_evaluator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "memory/delay_address_reuse.h"
#include "runtime/base/error.h"
#include "runtime/base/interval_map.h"
#include "runtime/base/time_limit.h"

namespace hyperrun {
namespace {

using Touch = PlanEvaluator::Touch;

// The steps of the Program that apply() would make. Evictions split live ranges; with n buffers, live range
//   b < n       is the first part of buffer b,
//   n + k       is the part behind eviction k,
//   n + K + j   with K evictions, are the other outputs and the scratch memory of rematerializations.
class OffloadedProgram {
 public:
  OffloadedProgram(const PlanEvaluator& r, const OffloadPlan& plan)
      : r_(r),
        n_(static_cast<std::int32_t>(r.program().instrs.size())),
        buffers_(static_cast<std::int32_t>(r.program().buffers.size())),
        list_(plan.evictions),
        before_(list_.size()),
        after_(list_.size()),
        first_before_(static_cast<std::size_t>(n_) + 1),
        first_after_(static_cast<std::size_t>(n_) + 1) {
    find_transfers(plan.offloaded_state);
    sort();
  }

  std::int32_t scratch_from() const { return buffers_ + static_cast<std::int32_t>(list_.size()); }
  std::int32_t buffer_of(std::int32_t live_range) const {
    return live_range < buffers_ ? live_range : list_[static_cast<std::size_t>(live_range - buffers_)].buffer;
  }

  // Calls step(stream, duration, original instruction or -1, operands) for each step. The lower-tier side of
  // a transfer is an operand without a live range: -1.
  void each_step(auto&& step) const;

  struct Operand {
    std::int32_t live_range;  // -1: in the lower tier
    Touch touch;
  };

 private:
  enum class Act : std::uint8_t { kNothing, kFetch, kRematerialize };
  struct Acts {
    Act returns = Act::kNothing;
    bool stores = false;
  };

  void find_transfers(const std::vector<std::int32_t>& offloaded_state) {
    std::int32_t buffer = -1, since = 0;
    bool offloaded = false, dirty = false;
    for (const Eviction& a : list_) {
      if (a.buffer != buffer) {
        buffer = a.buffer, since = 0, dirty = false;
        offloaded = std::ranges::binary_search(offloaded_state, buffer);
      }
      const std::vector<Access>& accesses = r_.uses()[static_cast<std::size_t>(buffer)].accesses;
      for (; since <= a.after; ++since) dirty = dirty || accesses[static_cast<std::size_t>(since)].writes;
      const bool returns = a.after + 1 < std::ssize(accesses);
      const bool needed = returns ? accesses[static_cast<std::size_t>(a.after) + 1].reads : offloaded;
      Acts& acts = acts_.emplace_back();
      acts.stores = a.after >= 0 && dirty && needed && a.producer < 0;
      if (acts.stores) dirty = false;
      if (returns && a.producer >= 0) acts.returns = Act::kRematerialize;
      if (returns && a.producer < 0 && needed) acts.returns = Act::kFetch;
    }
  }

  // Groups evictions by the instructions at which they return and leave. Those that return at one instruction
  // are sorted by when they are needed.
  void sort() {
    const auto back = [&](const Eviction& a) { return static_cast<std::size_t>(std::max(a.returns, 0)); };
    const auto gone = [&](const Eviction& a) { return static_cast<std::size_t>(a.leaves); };
    for (std::size_t k = 0; k < list_.size(); ++k) {
      ++first_before_[back(list_[k])];
      if (acts_[k].stores) ++first_after_[gone(list_[k])];
    }
    for (auto* first : {&first_before_, &first_after_}) {
      std::int32_t sum = 0;
      for (std::int32_t& f : *first) f = sum += f;
    }
    for (std::size_t k = list_.size(); k-- > 0;) {
      before_[static_cast<std::size_t>(--first_before_[back(list_[k])])] = static_cast<std::int32_t>(k);
      if (acts_[k].stores)
        after_[static_cast<std::size_t>(--first_after_[gone(list_[k])])] = static_cast<std::int32_t>(k);
    }
    const auto needed = [&](std::int32_t k) {
      const Eviction& a = list_[static_cast<std::size_t>(k)];
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

  const PlanEvaluator& r_;
  std::int32_t n_, buffers_;
  const std::vector<Eviction>& list_;
  std::vector<Acts> acts_;  // by eviction
  // Evictions by the instruction before which they return, and by the one after which they store.
  std::vector<std::int32_t> before_, after_;
  std::vector<std::int32_t> first_before_, first_after_;  // by instruction: index of the first of its own
};

void OffloadedProgram::each_step(auto&& step) const {
  std::vector<std::int32_t> live_range(static_cast<std::size_t>(buffers_));
  for (std::int32_t b = 0; b < buffers_; ++b) live_range[static_cast<std::size_t>(b)] = b;
  std::int32_t scratch = scratch_from();
  std::vector<Operand> operands;
  std::vector<std::int32_t> remats;
  const auto transfer = [&](std::int32_t k, bool store) {
    const std::int32_t b = list_[static_cast<std::size_t>(k)].buffer;
    operands = {{live_range[static_cast<std::size_t>(b)], all_of(b, store)}, {-1, all_of(b, !store)}};
    if (!store) std::swap(operands[0], operands[1]);
    step(store ? StreamKind::kDmaOut : StreamKind::kDmaIn, r_.transfer(b), -1, operands);
  };
  check_time();
  for (std::int32_t i = 0; i < n_; ++i) {
    const Instr& instr = r_.program().instrs[static_cast<std::size_t>(i)];
    const std::span<const std::int32_t> back = at(before_, first_before_, i);
    for (const std::int32_t k : back)
      live_range[static_cast<std::size_t>(list_[static_cast<std::size_t>(k)].buffer)] = buffers_ + k;
    remats.clear();
    for (const std::int32_t k : back) {
      const Act act = acts_[static_cast<std::size_t>(k)].returns;
      if (act == Act::kFetch) transfer(k, false);
      if (act == Act::kRematerialize) remats.push_back(k);
    }
    std::ranges::stable_sort(remats, {},
                             [&](std::int32_t k) { return list_[static_cast<std::size_t>(k)].producer; });
    for (const std::int32_t k : remats) {
      const Eviction& a = list_[static_cast<std::size_t>(k)];
      operands.clear();
      for (const Touch& t : r_.touches(a.producer)) {
        const bool kept = !t.write || t.buffer == a.buffer;
        operands.push_back({kept ? live_range[static_cast<std::size_t>(t.buffer)] : scratch++, t});
      }
      step(r_.program().instrs[static_cast<std::size_t>(a.producer)].stream, r_.duration(a.producer), -1,
           operands);
    }
    operands.clear();
    for (const Touch& t : r_.touches(i))
      operands.push_back({live_range[static_cast<std::size_t>(t.buffer)], t});
    step(instr.stream, r_.duration(i), i, operands);
    for (const std::int32_t k : at(after_, first_after_, i)) transfer(k, true);
  }
}

// The live ranges of a planned Program, in steps, and their offsets.
class LiveRanges {
 public:
  LiveRanges(const PlanEvaluator& r, const OffloadedProgram& steps) : r_(r) {
    const auto all = static_cast<std::size_t>(steps.scratch_from());
    ranges_.resize(all, {-1, -1});
    beyond_.resize(r.program().buffers.size(), {-1, -1});
    buffer_.resize(all);
    for (std::size_t s = 0; s < all; ++s) buffer_[s] = steps.buffer_of(static_cast<std::int32_t>(s));
    std::vector<std::pair<std::int32_t, std::int32_t>> sent;  // step and live range
    steps.each_step(
        [&](StreamKind stream, Nanos, std::int32_t, const std::vector<OffloadedProgram::Operand>& operands) {
          for (const OffloadedProgram::Operand& o : operands) extend(o);
          if (stream == StreamKind::kSend) sent.emplace_back(steps_, operands[0].live_range);
          ++steps_;
        });
    // Like place_buffers(): a sent buffer stays until the next message is sent.
    std::int32_t until = steps_ - 1;
    for (auto s = sent.rbegin(); s != sent.rend(); ++s) {
      std::int32_t& last = ranges_[static_cast<std::size_t>(s->second)].last;
      last = std::max(last, until);
      until = s->first;
    }
    for (const Output& output : r.program().outputs) ranges_[output.operand.buffer.index()].last = steps_ - 1;
  }

  // State has fixed offsets, in HBM or in the lower tier, and is not placed here.
  void exclude_state(const OffloadPlan& plan) {
    const std::vector<Buffer>& buffers = r_.program().buffers;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const bool offloaded = std::ranges::binary_search(plan.offloaded_state, static_cast<std::int32_t>(b));
      if (buffers[b].state && !offloaded) ranges_[b].first = -1;
      if (offloaded) beyond_[b].first = -1;
    }
  }

  Bytes live_peak() const {
    std::vector<std::int64_t> change(static_cast<std::size_t>(steps_) + 1);
    for (std::size_t s = 0; s < ranges_.size(); ++s) {
      if (ranges_[s].first < 0) continue;
      const std::int64_t bytes = (bytes_of(s).value + 63) / 64 * 64;
      change[static_cast<std::size_t>(ranges_[s].first)] += bytes;
      change[static_cast<std::size_t>(ranges_[s].last) + 1] -= bytes;
    }
    std::int64_t live = 0, most = 0;
    for (const std::int64_t c : change) most = std::max(most, live += c);
    return Bytes(most);
  }

  // Both return the peak.
  Bytes place(Bytes enough) {
    const auto bytes = [&](std::size_t s) { return bytes_of(s); };
    return place(ranges_, bytes, Bytes(64), enough, offsets_);
  }
  Bytes place_beyond(Bytes alignment) {
    const auto bytes = [&](std::size_t b) { return r_.program().buffers[b].bytes; };
    return place(beyond_, bytes, alignment, Bytes(0), offsets_beyond_);
  }

  std::size_t size() const { return ranges_.size(); }
  std::int32_t buffer(std::size_t live_range) const { return buffer_[live_range]; }
  // -1: state with a fixed offset.
  std::int64_t offset(std::size_t live_range) const { return offsets_[live_range]; }
  std::int64_t offset_beyond(std::size_t buffer) const { return offsets_beyond_[buffer]; }

 private:
  struct Range {
    std::int32_t first, last;
  };

  void extend(const OffloadedProgram::Operand& o) {
    const auto s = static_cast<std::size_t>(o.live_range);
    if (o.live_range >= 0 && s == ranges_.size())
      ranges_.push_back({-1, -1}), buffer_.push_back(o.touch.buffer);
    Range& range = o.live_range < 0 ? beyond_[static_cast<std::size_t>(o.touch.buffer)] : ranges_[s];
    if (range.first < 0) range.first = steps_;
    range.last = steps_;
  }

  Bytes place(const std::vector<Range>& ranges, auto bytes, Bytes alignment, Bytes enough,
              std::vector<std::int64_t>& offsets) const {
    check_time();
    std::vector<Lifetime> lifetimes;
    for (std::size_t s = 0; s < ranges.size(); ++s)
      if (ranges[s].first >= 0) lifetimes.push_back({ranges[s].first, ranges[s].last, bytes(s)});
    Assignment assignment = assign_offsets(lifetimes, alignment, enough, r_.most_pairs());
    delay_address_reuse(lifetimes, assignment, alignment);
    offsets.assign(ranges.size(), -1);
    Bytes peak{};
    for (std::size_t s = 0, k = 0; s < ranges.size(); ++s) {
      if (ranges[s].first < 0) continue;
      offsets[s] = assignment.offsets[k].value;
      peak = std::max(peak, assignment.offsets[k] + lifetimes[k].bytes);
      ++k;
    }
    return peak;
  }

  Bytes bytes_of(std::size_t s) const {
    return r_.program().buffers[static_cast<std::size_t>(buffer_[s])].bytes;
  }

  const PlanEvaluator& r_;
  std::vector<Range> ranges_;         // by live range
  std::vector<std::int32_t> buffer_;  // by live range
  std::vector<Range> beyond_;         // by buffer, in the lower tier
  std::vector<std::int64_t> offsets_, offsets_beyond_;
  std::int32_t steps_ = 0;
};

// Computes when each step runs. Streams run in order. A read waits for the last write of the same bytes, a
// write for all their earlier uses. A buffer that reuses addresses waits for the former occupants.
class TimelineBuilder {
 public:
  TimelineBuilder(const PlanEvaluator& r, const LiveRanges& live_ranges)
      : r_(r),
        live_ranges_(live_ranges),
        cell_(live_ranges.size(), -1),
        beyond_(r.program().buffers.size(), -1),
        cells_(1) {}

  Timeline run(const OffloadedProgram& steps) {
    steps.each_step([&](StreamKind stream, Nanos lasts, std::int32_t own,
                        const std::vector<OffloadedProgram::Operand>& operands) {
      std::int64_t& free = free_[static_cast<std::size_t>(stream)];
      std::int64_t begin = free;
      for (const OffloadedProgram::Operand& o : operands)
        for (const Cell& c : cells(o)) begin = std::max(begin, o.touch.write ? c.used : c.written);
      free = begin + lasts.value;
      for (const OffloadedProgram::Operand& o : operands)
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
    std::int64_t written = 0, used = 0;  // ns: end of the last write and of the last use
  };

  std::span<Cell> cells(const OffloadedProgram::Operand& o) {
    const bool beyond = o.live_range < 0;
    const auto of = static_cast<std::size_t>(beyond ? o.touch.buffer : o.live_range);
    std::int32_t& first = beyond ? beyond_[of] : cell_[of];
    if (first < 0) {
      first = static_cast<std::int32_t>(cells_.size());
      const std::int64_t offset = beyond ? live_ranges_.offset_beyond(of) : live_ranges_.offset(of);
      occupy(beyond ? occupants_beyond_ : occupants_, offset, r_.cuts(o.touch.buffer));
    }
    return std::span(cells_).subspan(static_cast<std::size_t>(first + o.touch.cell),
                                     static_cast<std::size_t>(o.touch.cells));
  }

  // Creates a buffer's cells. They inherit the times of the former occupants of their addresses.
  void occupy(IntervalMap<std::int32_t>& occupants, std::int64_t offset, std::span<const std::int64_t> cuts) {
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      Cell cell;
      if (offset >= 0) {
        const auto former = occupants.pieces(offset + cuts[c], offset + cuts[c + 1]);
        for (auto piece = former.first; piece != former.second; ++piece) {
          const Cell& old = cells_[static_cast<std::size_t>(piece->second)];
          cell = {std::max(cell.written, old.written), std::max(cell.used, old.used)};
        }
        occupants.unite(former, static_cast<std::int32_t>(cells_.size()));
      }
      cells_.push_back(cell);
    }
  }

  const PlanEvaluator& r_;
  const LiveRanges& live_ranges_;
  std::vector<std::int32_t> cell_;    // by live range: its first cell; -1: not used yet
  std::vector<std::int32_t> beyond_;  // by buffer: its first cell in the lower tier; -1: not used yet
  std::vector<Cell> cells_;           // [0] stands for addresses that nobody has used
  IntervalMap<std::int32_t> occupants_, occupants_beyond_;  // cell by address
  std::array<std::int64_t, kStreams> free_{};
  Timeline timeline_;
};

}  // namespace

PlanEvaluator::PlanEvaluator(const Program& program, const std::vector<BufferUses>& uses,
                             std::vector<Nanos> durations, const std::function<Nanos(Bytes)>& transfer,
                             Bytes tier_alignment, std::int64_t most_pairs)
    : program_(program),
      uses_(uses),
      durations_(std::move(durations)),
      tier_alignment_(tier_alignment),
      most_pairs_(most_pairs) {
  for (const Buffer& b : program.buffers) transfers_.push_back(transfer(b.bytes - b.empty));
  cut_buffers();
  collect_touches();
}

void PlanEvaluator::cut_buffers() {
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

void PlanEvaluator::collect_touches() {
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

PlanEvaluator::Outcome PlanEvaluator::evaluate(const OffloadPlan& plan, Bytes state, Bytes budget) const {
  const OffloadedProgram steps(*this, plan);
  LiveRanges live_ranges(*this, steps);
  live_ranges.exclude_state(plan);
  if (const Bytes live = state + live_ranges.live_peak(); live > budget) return {live, {}, {}};
  const Bytes peak = state + live_ranges.place(budget > state ? budget - state : Bytes(0));
  if (peak > budget) return {peak, {}, {}};
  const Bytes beyond = live_ranges.place_beyond(tier_alignment_);
  return {peak, TimelineBuilder(*this, live_ranges).run(steps), beyond};
}

bool PlanEvaluator::fits(const OffloadPlan& plan, Bytes state, Bytes budget) const {
  const OffloadedProgram steps(*this, plan);
  LiveRanges live_ranges(*this, steps);
  live_ranges.exclude_state(plan);
  return state + live_ranges.live_peak() <= budget && state + live_ranges.place(budget - state) <= budget;
}

PlanEvaluator::Outcome PlanEvaluator::evaluate_lowest(const OffloadPlan& plan, Bytes state) const {
  const OffloadedProgram steps(*this, plan);
  LiveRanges live_ranges(*this, steps);
  live_ranges.exclude_state(plan);
  const Bytes peak = state + live_ranges.place(Bytes(0)), beyond = live_ranges.place_beyond(tier_alignment_);
  return {peak, TimelineBuilder(*this, live_ranges).run(steps), beyond};
}

}  // namespace hyperrun
