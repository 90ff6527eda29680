#include "runtime/offload/compress_period.h"

#include <algorithm>

namespace hyperrun {
namespace {

// One use of a buffer, linked to the previous use of the same buffer (`instr`, and the index of the use in
// it). If the links of two Programs are equal, so are their buffers, apart from numbering.
struct Link {
  std::int32_t buffer, instr = -1, use = 0;
};

class Links {
 public:
  explicit Links(const Program& program) {
    std::vector<Link> last(program.buffers.size());
    for (std::size_t i = 0; i < program.instrs.size(); ++i) {
      first_.push_back(links_.size());
      std::int32_t use = 0;
      each_use(program.instrs[i], [&](const Operand& o, bool, bool) {
        Link& before = last[o.buffer.index()];
        links_.push_back({static_cast<std::int32_t>(o.buffer.index()), before.instr, before.use});
        before.instr = static_cast<std::int32_t>(i), before.use = use++;
      });
    }
    first_.push_back(links_.size());
  }
  std::span<const Link> of(std::int32_t instr) const {
    const auto i = static_cast<std::size_t>(instr);
    return std::span(links_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  // The index of the instruction's use of a buffer.
  std::size_t use(std::int32_t instr, std::int32_t buffer) const {
    const std::span<const Link> list = of(instr);
    return static_cast<std::size_t>(std::ranges::find(list, buffer, &Link::buffer) - list.begin());
  }

 private:
  std::vector<std::size_t> first_;  // by instruction
  std::vector<Link> links_;
};

void mix(std::uint64_t& hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 29;
}

// A hash per instruction of everything that planning depends on. Buffers are identified by the distance to
// their previous use, so that equal periods have equal hashes.
std::vector<std::uint64_t> signatures(const Program& p, const std::vector<BufferUses>& uses,
                                      std::span<const Nanos> durations, const Links& links) {
  std::vector<std::uint64_t> list(p.instrs.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Instr& instr = p.instrs[i];
    std::uint64_t& hash = list[i];
    mix(hash, durations[i].value);
    mix(hash, static_cast<std::int64_t>(instr.stream));
    mix(hash, static_cast<std::int64_t>(instr.op.index()));
    const Link* link = links.of(static_cast<std::int32_t>(i)).data();
    each_use(instr, [&](const Operand& o, bool read, bool write) {
      const Buffer& b = p[o.buffer];
      const bool movable = uses[o.buffer.index()].movable;
      for (const std::int64_t v : {b.bytes.value, o.offset.value, o.bytes.value}) mix(hash, v);
      mix(hash, static_cast<std::int64_t>(b.category) * 64 + static_cast<std::int64_t>(b.tier) * 16 +
                    b.state * 8 + movable * 4 + read * 2 + write);
      mix(hash, link->instr < 0 ? -1 : static_cast<std::int64_t>(i) - link->instr);
      mix(hash, link->use);
      ++link;
    });
  }
  return list;
}

// Each instruction of [from, to) equals the one a period before it.
struct Repetition {
  std::int32_t from = 0, to = 0, period = 0;
};

// The repetition with the shortest period that contains the middle of the list and covers half of it.
std::optional<Repetition> find_repetition(const std::vector<std::uint64_t>& list) {
  const auto n = static_cast<std::int32_t>(list.size()), middle = n / 2;
  for (std::int32_t period = 1; period <= middle; ++period) {
    const auto repeats = [&](std::int32_t i) {
      return list[static_cast<std::size_t>(i)] == list[static_cast<std::size_t>(i - period)];
    };
    if (!repeats(middle)) continue;
    Repetition run{middle, middle + 1, period};
    while (run.from > period && repeats(run.from - 1)) --run.from;
    while (run.to < n && repeats(run.to)) ++run.to;
    if (run.to - run.from > n / 2) return run;
  }
  return std::nullopt;
}

// The instruction with the fewest live bytes. The fewer gaps the cut separates, the better do the plans on
// both sides match.
std::int32_t fewest_live_bytes(const Program& p, const std::vector<BufferUses>& uses, std::int32_t from,
                               std::int32_t to) {
  std::vector<std::int64_t> change(p.instrs.size() + 1);
  for (std::size_t b = 0; b < uses.size(); ++b) {
    if (uses[b].accesses.empty() || p.buffers[b].state) continue;
    change[static_cast<std::size_t>(uses[b].accesses.front().instr) + 1] += p.buffers[b].bytes.value;
    change[static_cast<std::size_t>(uses[b].accesses.back().instr) + 1] -= p.buffers[b].bytes.value;
  }
  std::int32_t best = from;
  std::int64_t live = 0, least = -1;
  for (std::int32_t i = 0; i < to; ++i) {
    live += change[static_cast<std::size_t>(i)];
    if (i >= from && (least < 0 || live < least)) least = live, best = i;
  }
  return best;
}

class Compressor {
 public:
  Compressor(const Program& whole, const std::vector<BufferUses>& uses, const Links& links,
             CompressedProgram& compressed)
      : whole_(whole),
        uses_(uses),
        links_(links),
        compressed_(compressed),
        resumes_(compressed.cut + compressed.removed()),
        number_(whole.buffers.size(), -1),
        counterpart_(whole.buffers.size(), -1) {}

  // Returns false if the Program cannot be cut.
  bool run(std::span<const Nanos> durations) {
    compressed_.program.name = whole_.name;
    compressed_.program.mesh = whole_.mesh;
    const auto n = static_cast<std::int32_t>(whole_.instrs.size());
    for (std::int32_t i = 0; i < n; i = i + 1 == compressed_.cut ? resumes_ : i + 1) {
      Instr instr = whole_.instrs[static_cast<std::size_t>(i)];
      for (auto* list : {&instr.in, &instr.out})
        for (Operand& o : *list)
          if (!rename(o, i)) return false;
      if (instr.scratch.buffer.valid() && !rename(instr.scratch, i)) return false;
      compressed_.program.instrs.push_back(std::move(instr));
      compressed_.durations.push_back(durations[static_cast<std::size_t>(i)]);
    }
    for (Output output : whole_.outputs) {
      if (!rename(output.operand, resumes_)) return false;
      compressed_.program.outputs.push_back(std::move(output));
    }
    return matches_whole();
  }

 private:
  bool rename(Operand& o, std::int32_t at) {
    const std::int32_t b = at < compressed_.cut ? static_cast<std::int32_t>(o.buffer.index())
                                                : counterpart(static_cast<std::int32_t>(o.buffer.index()));
    if (b < 0 || whole_.buffers[static_cast<std::size_t>(b)].bytes != whole_[o.buffer].bytes) return false;
    std::int32_t& number = number_[static_cast<std::size_t>(b)];
    if (number < 0) {
      number = static_cast<std::int32_t>(compressed_.buffers.size());
      compressed_.buffers.push_back(b);
      compressed_.program.buffers.push_back(whole_.buffers[static_cast<std::size_t>(b)]);
    }
    o.buffer = BufferId(number);
    return true;
  }

  // The buffer that plays this one's part before the cut; -1: none.
  std::int32_t counterpart(std::int32_t buffer) {
    std::int32_t& found = counterpart_[static_cast<std::size_t>(buffer)];
    if (found >= 0) return found;
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(buffer)].accesses;
    const std::int32_t first = accesses.front().instr;
    if (first < compressed_.cut || first >= resumes_) return found = buffer;
    const auto last = std::prev(std::ranges::lower_bound(accesses, resumes_, {}, &Access::instr))->instr;
    const std::int32_t there = last - compressed_.removed();
    if (there < compressed_.from) return -1;
    const std::size_t use = links_.use(last, buffer);
    return found = links_.of(there)[use].buffer;
  }

  bool matches_whole() const {
    const Links links(compressed_.program);
    for (std::int32_t i = 0; i < std::ssize(compressed_.program.instrs); ++i) {
      const std::span<const Link> here = links.of(i),
                                  there = links_.of(i < compressed_.cut ? i : i + compressed_.removed());
      for (std::size_t u = 0; u < here.size(); ++u) {
        const std::int32_t before = there[u].instr;
        if (here[u].instr != (before < compressed_.cut ? before : before - compressed_.removed()))
          return false;
        if (here[u].use != there[u].use) return false;
      }
    }
    return true;
  }

  const Program& whole_;
  const std::vector<BufferUses>& uses_;
  const Links& links_;
  CompressedProgram& compressed_;
  std::int32_t resumes_;
  std::vector<std::int32_t> number_, counterpart_;  // by buffer of the whole; -1: not yet known
};

std::int32_t max_reuse_distance(const Links& links, const Repetition& run) {
  std::int32_t most = 0;
  for (std::int32_t i = run.from; i < run.to; ++i)
    for (const Link& link : links.of(i))
      if (link.instr >= 0) most = std::max(most, i - link.instr);
  return most;
}

}  // namespace

std::int64_t CompressedProgram::length_of_whole(const Timeline& timeline) const {
  if (timeline.begin.empty()) return 0;
  std::vector<std::int64_t> lasts;
  for (auto i = static_cast<std::size_t>(from + period); i < static_cast<std::size_t>(to); ++i)
    lasts.push_back(timeline.begin[i] - timeline.begin[i - static_cast<std::size_t>(period)]);
  const auto middle = lasts.begin() + std::ssize(lasts) / 2;
  std::ranges::nth_element(lasts, middle);
  return timeline.length + omitted * *middle;
}

std::vector<std::int32_t> CompressedProgram::splice_points() const {
  std::vector<std::int32_t> list;
  for (std::int32_t away = 0; away < to - from; away += period)
    for (const std::int32_t splice : {cut - away, cut + away})
      if (splice >= from + std::max(reach, period) && splice <= to - reach && (away > 0 || list.empty()))
        list.push_back(splice);
  return list;
}

std::optional<CompressedProgram> compress_period(const Program& whole, const std::vector<BufferUses>& uses,
                                                 std::span<const Nanos> durations, const Timeline& timeline,
                                                 Nanos kept) {
  const Links links(whole);
  const std::optional<Repetition> run = find_repetition(signatures(whole, uses, durations, links));
  if (!run) return std::nullopt;
  CompressedProgram compressed{
      .period = run->period, .from = run->from - run->period, .reach = max_reuse_distance(links, *run)};
  const std::size_t middle = whole.instrs.size() / 2;
  const std::int64_t lasts =
      timeline.begin[middle] - timeline.begin[middle - static_cast<std::size_t>(run->period)];
  const auto periods = static_cast<std::int32_t>(
      std::min<std::int64_t>(1 + kept.value / std::max<std::int64_t>(lasts, 1), run->to / run->period));
  const std::int32_t aside = std::max(compressed.reach, periods * run->period);
  const std::int32_t earliest = compressed.from + aside;
  if (earliest + run->period > run->to) return std::nullopt;
  compressed.cut = fewest_live_bytes(whole, uses, earliest, earliest + run->period);
  compressed.omitted = (run->to - aside - compressed.cut) / run->period;
  if (2 * compressed.removed() < std::ssize(whole.instrs)) return std::nullopt;
  compressed.to = run->to - compressed.removed();
  if (!Compressor(whole, uses, links, compressed).run(durations)) return std::nullopt;
  return compressed;
}

namespace {

class Expander {
 public:
  Expander(const CompressedProgram& compressed, const std::vector<BufferUses>& compressed_uses,
           const Program& whole, const std::vector<BufferUses>& uses, std::int32_t splice)
      : compressed_(compressed),
        compressed_uses_(compressed_uses),
        whole_(whole),
        uses_(uses),
        splice_(splice) {}

  std::optional<OffloadPlan> run(const OffloadPlan& plan) {
    for (const std::int32_t state : plan.offloaded_state)
      out_.offloaded_state.push_back(compressed_.buffers[static_cast<std::size_t>(state)]);
    std::ranges::sort(out_.offloaded_state);
    for (const Eviction& a : plan.evictions)
      if (!add_all(a)) return std::nullopt;
    std::ranges::sort(out_.evictions, {}, [](const Eviction& a) { return std::pair(a.buffer, a.after); });
    if (!return_inputs()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // Adds the eviction of the compressed Program, or all of its copies in the omitted periods.
  bool add_all(const Eviction& a) {
    const std::vector<Access>& accesses = compressed_uses_[static_cast<std::size_t>(a.buffer)].accesses;
    if (a.after < 0) return add_beginning(a, accesses.front().instr);
    const std::int32_t from = accesses[static_cast<std::size_t>(a.after)].instr;
    const std::int32_t to = static_cast<std::size_t>(a.after) + 1 < accesses.size()
                                ? accesses[static_cast<std::size_t>(a.after) + 1].instr
                                : compressed_size();
    if (from >= splice_) return add(a, from, to, compressed_.removed());
    if (from < splice_ - compressed_.period) return add(a, from, to, 0);
    for (std::int32_t k = 0; k <= compressed_.omitted; ++k)
      if (!add(a, from, to, k * compressed_.period)) return false;
    return true;
  }

  bool add_beginning(const Eviction& a, std::int32_t to) {
    const std::int32_t by = to < splice_ ? 0 : compressed_.removed();
    const std::int32_t b = compressed_.buffers[static_cast<std::size_t>(a.buffer)];
    if (uses_[static_cast<std::size_t>(b)].accesses.front().instr != to + by) return false;
    out_.evictions.push_back({b, -1, -1, across(a.returns, to, by)});
    return true;
  }

  // Eviction::returns for a gap that spans all omitted periods: behind them, unless it returned more than a
  // period before the splice point.
  std::int32_t across(std::int32_t returns, std::int32_t to, std::int32_t by) const {
    if (to == compressed_size()) return returns + compressed_.removed();
    return returns < splice_ - compressed_.period ? returns : returns + by;
  }

  bool add(const Eviction& a, std::int32_t from, std::int32_t to, std::int32_t by) {
    const std::int32_t b = buffer_at(a.buffer, from, from + by);
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(b)].accesses;
    const auto here = std::ranges::lower_bound(accesses, from + by, {}, &Access::instr);
    const auto after = static_cast<std::int32_t>(here - accesses.begin());
    const bool last = here + 1 == accesses.end();
    const std::int32_t next = last ? static_cast<std::int32_t>(whole_.instrs.size()) : (here + 1)->instr;
    const std::int32_t producer = a.producer < 0 ? -1 : accesses.front().instr;
    const bool is_across = next - (from + by) != to - from;
    if (is_across && (by > 0 || next != to + compressed_.removed())) return false;
    if (is_across)
      out_.evictions.push_back({b, after, a.leaves < splice_ ? a.leaves : a.leaves + compressed_.removed(),
                                across(a.returns, to, compressed_.removed()), producer});
    else
      out_.evictions.push_back({b, after, a.leaves + by, a.returns + by, producer});
    return true;
  }

  // The buffer that an instruction of the whole Program uses like `compressed_instr` uses `buffer`.
  std::int32_t buffer_at(std::int32_t buffer, std::int32_t compressed_instr, std::int32_t instr) const {
    std::int32_t nth = 0, use = -1, found = -1;
    each_use(compressed_.program.instrs[static_cast<std::size_t>(compressed_instr)],
             [&](const Operand& o, bool, bool) {
               if (use < 0 && static_cast<std::int32_t>(o.buffer.index()) == buffer) use = nth;
               ++nth;
             });
    nth = 0;
    each_use(whole_.instrs[static_cast<std::size_t>(instr)], [&](const Operand& o, bool, bool) {
      if (nth++ == use) found = static_cast<std::int32_t>(o.buffer.index());
    });
    return found;
  }

  // Lets the inputs of rematerializations return in time where the splice point has separated them.
  bool return_inputs() {
    for (std::size_t k = 0; k < out_.evictions.size(); ++k) {
      const Eviction& a = out_.evictions[k];
      if (a.producer < 0) continue;
      for (const Operand& o : whole_.instrs[static_cast<std::size_t>(a.producer)].in) {
        const auto b = static_cast<std::int32_t>(o.buffer.index());
        auto away = std::ranges::lower_bound(out_.evictions, b, {}, &Eviction::buffer);
        while (away != out_.evictions.end() && away->buffer == b && away->returns <= a.returns) ++away;
        if (away == out_.evictions.end() || away->buffer != b || away->leaves >= a.returns) continue;
        const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(b)].accesses;
        const auto next = static_cast<std::size_t>(away->after) + 1;
        if (away->producer >= 0 || next == accesses.size() || !accesses[next].reads) return false;
        away->returns = a.returns;
      }
    }
    return true;
  }

  std::int32_t compressed_size() const {
    return static_cast<std::int32_t>(compressed_.program.instrs.size());
  }

  const CompressedProgram& compressed_;
  const std::vector<BufferUses>& compressed_uses_;
  const Program& whole_;
  const std::vector<BufferUses>& uses_;
  std::int32_t splice_;
  OffloadPlan out_;
};

}  // namespace

std::optional<OffloadPlan> expand_period(const CompressedProgram& compressed, const OffloadPlan& plan,
                                         const std::vector<BufferUses>& compressed_uses, const Program& whole,
                                         const std::vector<BufferUses>& uses, std::int32_t splice) {
  return Expander(compressed, compressed_uses, whole, uses, splice).run(plan);
}

}  // namespace hyperrun
