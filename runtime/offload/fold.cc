#include "runtime/offload/fold.h"

#include <algorithm>

namespace hyperrun {
namespace {

// An instruction's use of a buffer, and the use before it of the same one: by instruction, and the how
// manieth of its uses. Uses of two Programs whose links are alike are uses of like buffers.
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
  // Which of the instruction's uses is the buffer's.
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

// By instruction: all that planning sees of it, with uses by how far back the ones before them are.
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

// Each instruction of [from, to) is as the one a period before it.
struct Run {
  std::int32_t from = 0, to = 0, period = 0;
};

// The one of the shortest period that has the middle of the list, and half of it.
std::optional<Run> find_run(const std::vector<std::uint64_t>& list) {
  const auto n = static_cast<std::int32_t>(list.size()), middle = n / 2;
  for (std::int32_t period = 1; period <= middle; ++period) {
    const auto repeats = [&](std::int32_t i) {
      return list[static_cast<std::size_t>(i)] == list[static_cast<std::size_t>(i - period)];
    };
    if (!repeats(middle)) continue;
    Run run{middle, middle + 1, period};
    while (run.from > period && repeats(run.from - 1)) --run.from;
    while (run.to < n && repeats(run.to)) ++run.to;
    if (run.to - run.from > n / 2) return run;
  }
  return std::nullopt;
}

// Where least lives across: the fewer gaps a cut parts, the more alike are the decisions on its two sides.
std::int32_t emptiest(const Program& p, const std::vector<BufferUses>& uses, std::int32_t from,
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

class Folding {
 public:
  Folding(const Program& whole, const std::vector<BufferUses>& uses, const Links& links, Fold& fold)
      : whole_(whole),
        uses_(uses),
        links_(links),
        fold_(fold),
        resumes_(fold.cut + fold.removed()),
        number_(whole.buffers.size(), -1),
        like_(whole.buffers.size(), -1) {}

  // Whether it can be done.
  bool run(std::span<const Nanos> durations) {
    fold_.program.name = whole_.name;
    fold_.program.mesh = whole_.mesh;
    const auto n = static_cast<std::int32_t>(whole_.instrs.size());
    for (std::int32_t i = 0; i < n; i = i + 1 == fold_.cut ? resumes_ : i + 1) {
      Instr instr = whole_.instrs[static_cast<std::size_t>(i)];
      for (auto* list : {&instr.in, &instr.out})
        for (Operand& o : *list)
          if (!rename(o, i)) return false;
      if (instr.scratch.buffer.valid() && !rename(instr.scratch, i)) return false;
      fold_.program.instrs.push_back(std::move(instr));
      fold_.durations.push_back(durations[static_cast<std::size_t>(i)]);
    }
    for (Output output : whole_.outputs) {
      if (!rename(output.operand, resumes_)) return false;
      fold_.program.outputs.push_back(std::move(output));
    }
    return is_like_the_whole();
  }

 private:
  bool rename(Operand& o, std::int32_t at) {
    const std::int32_t b = at < fold_.cut ? static_cast<std::int32_t>(o.buffer.index())
                                          : like(static_cast<std::int32_t>(o.buffer.index()));
    if (b < 0 || whole_.buffers[static_cast<std::size_t>(b)].bytes != whole_[o.buffer].bytes) return false;
    std::int32_t& number = number_[static_cast<std::size_t>(b)];
    if (number < 0) {
      number = static_cast<std::int32_t>(fold_.buffers.size());
      fold_.buffers.push_back(b);
      fold_.program.buffers.push_back(whole_.buffers[static_cast<std::size_t>(b)]);
    }
    o.buffer = BufferId(number);
    return true;
  }

  // The buffer that is, before the cut, what this one is where the Program resumes; -1: none.
  std::int32_t like(std::int32_t buffer) {
    std::int32_t& found = like_[static_cast<std::size_t>(buffer)];
    if (found >= 0) return found;
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(buffer)].accesses;
    const std::int32_t first = accesses.front().instr;
    if (first < fold_.cut || first >= resumes_) return found = buffer;
    const auto last = std::prev(std::ranges::lower_bound(accesses, resumes_, {}, &Access::instr))->instr;
    const std::int32_t there = last - fold_.removed();
    if (there < fold_.from) return -1;
    const std::size_t use = links_.use(last, buffer);
    return found = links_.of(there)[use].buffer;
  }

  bool is_like_the_whole() const {
    const Links links(fold_.program);
    for (std::int32_t i = 0; i < std::ssize(fold_.program.instrs); ++i) {
      const std::span<const Link> here = links.of(i),
                                  there = links_.of(i < fold_.cut ? i : i + fold_.removed());
      for (std::size_t u = 0; u < here.size(); ++u) {
        const std::int32_t before = there[u].instr;
        if (here[u].instr != (before < fold_.cut ? before : before - fold_.removed())) return false;
        if (here[u].use != there[u].use) return false;
      }
    }
    return true;
  }

  const Program& whole_;
  const std::vector<BufferUses>& uses_;
  const Links& links_;
  Fold& fold_;
  std::int32_t resumes_;
  std::vector<std::int32_t> number_, like_;  // by buffer of the whole; -1: not known yet
};

std::int32_t reach(const Links& links, const Run& run) {
  std::int32_t most = 0;
  for (std::int32_t i = run.from; i < run.to; ++i)
    for (const Link& link : links.of(i))
      if (link.instr >= 0) most = std::max(most, i - link.instr);
  return most;
}

}  // namespace

std::int64_t Fold::length_of_whole(const Timeline& timeline) const {
  if (timeline.begin.empty()) return 0;
  std::vector<std::int64_t> lasts;
  for (auto i = static_cast<std::size_t>(from + period); i < static_cast<std::size_t>(to); ++i)
    lasts.push_back(timeline.begin[i] - timeline.begin[i - static_cast<std::size_t>(period)]);
  const auto middle = lasts.begin() + std::ssize(lasts) / 2;
  std::ranges::nth_element(lasts, middle);
  return timeline.length + left_out * *middle;
}

std::vector<std::int32_t> Fold::seams() const {
  std::vector<std::int32_t> list;
  for (std::int32_t away = 0; away < to - from; away += period)
    for (const std::int32_t seam : {cut - away, cut + away})
      if (seam >= from + std::max(reach, period) && seam <= to - reach && (away > 0 || list.empty()))
        list.push_back(seam);
  return list;
}

std::optional<Fold> fold(const Program& whole, const std::vector<BufferUses>& uses,
                         std::span<const Nanos> durations, const Timeline& timeline, Nanos kept) {
  const Links links(whole);
  const std::optional<Run> run = find_run(signatures(whole, uses, durations, links));
  if (!run) return std::nullopt;
  Fold fold{.period = run->period, .from = run->from - run->period, .reach = reach(links, *run)};
  const std::size_t middle = whole.instrs.size() / 2;
  const std::int64_t lasts =
      timeline.begin[middle] - timeline.begin[middle - static_cast<std::size_t>(run->period)];
  const auto periods = static_cast<std::int32_t>(
      std::min<std::int64_t>(1 + kept.value / std::max<std::int64_t>(lasts, 1), run->to / run->period));
  const std::int32_t aside = std::max(fold.reach, periods * run->period);
  const std::int32_t earliest = fold.from + aside;
  if (earliest + run->period > run->to) return std::nullopt;
  fold.cut = emptiest(whole, uses, earliest, earliest + run->period);
  fold.left_out = (run->to - aside - fold.cut) / run->period;
  if (2 * fold.removed() < std::ssize(whole.instrs)) return std::nullopt;
  fold.to = run->to - fold.removed();
  if (!Folding(whole, uses, links, fold).run(durations)) return std::nullopt;
  return fold;
}

namespace {

class Unfolding {
 public:
  Unfolding(const Fold& fold, const std::vector<BufferUses>& uses_of_fold, const Program& whole,
            const std::vector<BufferUses>& uses, std::int32_t seam)
      : fold_(fold), uses_of_fold_(uses_of_fold), whole_(whole), uses_(uses), seam_(seam) {}

  std::optional<Absences> run(const Absences& absences) {
    for (const std::int32_t home : absences.homes)
      out_.homes.push_back(fold_.buffers[static_cast<std::size_t>(home)]);
    std::ranges::sort(out_.homes);
    for (const Absence& a : absences.list)
      if (!add_all(a)) return std::nullopt;
    std::ranges::sort(out_.list, {}, [](const Absence& a) { return std::pair(a.buffer, a.after); });
    if (!inputs_are_there()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // All that the absence stands for.
  bool add_all(const Absence& a) {
    const std::vector<Access>& accesses = uses_of_fold_[static_cast<std::size_t>(a.buffer)].accesses;
    if (a.after < 0) return add_beginning(a, accesses.front().instr);
    const std::int32_t from = accesses[static_cast<std::size_t>(a.after)].instr;
    const std::int32_t to = static_cast<std::size_t>(a.after) + 1 < accesses.size()
                                ? accesses[static_cast<std::size_t>(a.after) + 1].instr
                                : size_of_fold();
    if (from >= seam_) return add(a, from, to, fold_.removed());
    if (from < seam_ - fold_.period) return add(a, from, to, 0);
    for (std::int32_t k = 0; k <= fold_.left_out; ++k)
      if (!add(a, from, to, k * fold_.period)) return false;
    return true;
  }

  bool add_beginning(const Absence& a, std::int32_t to) {
    const std::int32_t by = to < seam_ ? 0 : fold_.removed();
    const std::int32_t b = fold_.buffers[static_cast<std::size_t>(a.buffer)];
    if (uses_[static_cast<std::size_t>(b)].accesses.front().instr != to + by) return false;
    out_.list.push_back({b, -1, -1, far(a.returns, to, by)});
    return true;
  }

  // Of what is away across all that is left out: it comes back behind it, unless it was back for a whole
  // period before the seam.
  std::int32_t far(std::int32_t returns, std::int32_t to, std::int32_t by) const {
    if (to == size_of_fold()) return returns + fold_.removed();
    return returns < seam_ - fold_.period ? returns : returns + by;
  }

  bool add(const Absence& a, std::int32_t from, std::int32_t to, std::int32_t by) {
    const std::int32_t b = buffer_at(a.buffer, from, from + by);
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(b)].accesses;
    const auto here = std::ranges::lower_bound(accesses, from + by, {}, &Access::instr);
    const auto after = static_cast<std::int32_t>(here - accesses.begin());
    const bool last = here + 1 == accesses.end();
    const std::int32_t next = last ? static_cast<std::int32_t>(whole_.instrs.size()) : (here + 1)->instr;
    const std::int32_t maker = a.maker < 0 ? -1 : accesses.front().instr;
    const bool is_far = next - (from + by) != to - from;
    if (is_far && (by > 0 || next != to + fold_.removed())) return false;
    if (is_far)
      out_.list.push_back({b, after, a.leaves < seam_ ? a.leaves : a.leaves + fold_.removed(),
                           far(a.returns, to, fold_.removed()), maker});
    else
      out_.list.push_back({b, after, a.leaves + by, a.returns + by, maker});
    return true;
  }

  // The buffer that an instruction of the whole uses as one of the fold does the given one.
  std::int32_t buffer_at(std::int32_t buffer, std::int32_t instr_of_fold, std::int32_t instr) const {
    std::int32_t nth = 0, use = -1, found = -1;
    each_use(fold_.program.instrs[static_cast<std::size_t>(instr_of_fold)],
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

  // What is made again needs what it is made of; that comes back for it, where the seam has parted them.
  bool inputs_are_there() {
    for (std::size_t k = 0; k < out_.list.size(); ++k) {
      const Absence& a = out_.list[k];
      if (a.maker < 0) continue;
      for (const Operand& o : whole_.instrs[static_cast<std::size_t>(a.maker)].in) {
        const auto b = static_cast<std::int32_t>(o.buffer.index());
        auto away = std::ranges::lower_bound(out_.list, b, {}, &Absence::buffer);
        while (away != out_.list.end() && away->buffer == b && away->returns <= a.returns) ++away;
        if (away == out_.list.end() || away->buffer != b || away->leaves >= a.returns) continue;
        const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(b)].accesses;
        const auto next = static_cast<std::size_t>(away->after) + 1;
        if (away->maker >= 0 || next == accesses.size() || !accesses[next].reads) return false;
        away->returns = a.returns;
      }
    }
    return true;
  }

  std::int32_t size_of_fold() const { return static_cast<std::int32_t>(fold_.program.instrs.size()); }

  const Fold& fold_;
  const std::vector<BufferUses>& uses_of_fold_;
  const Program& whole_;
  const std::vector<BufferUses>& uses_;
  std::int32_t seam_;
  Absences out_;
};

}  // namespace

std::optional<Absences> unfold(const Fold& fold, const Absences& absences,
                               const std::vector<BufferUses>& uses_of_fold, const Program& whole,
                               const std::vector<BufferUses>& uses, std::int32_t seam) {
  return Unfolding(fold, uses_of_fold, whole, uses, seam).run(absences);
}

}  // namespace hyperrun
