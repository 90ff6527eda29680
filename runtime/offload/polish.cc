#include "runtime/offload/polish.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/offload/remake.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kAllWindows = 8;  // of gaps with so many instructions at most, each is tried

class Polishing {
 public:
  Polishing(const Rehearsal& rehearsal, const Absences& absences, Bytes state, Bytes budget,
            std::int64_t most)
      : rehearsal_(rehearsal),
        homes_(absences.homes),
        state_(state),
        budget_(budget),
        left_(most / std::max<std::int64_t>(1, std::ssize(rehearsal.program().instrs))) {
    for (const Absence& a : absences.list) spent_[{a.buffer, a.after}] = a;
    for (std::int32_t b = 0; b < std::ssize(rehearsal.uses()) && std::ssize(gaps_) <= left_; ++b) add_gaps(b);
  }

  Absences run() {
    std::int64_t once = 0;
    for (const Gap& g : gaps_) once += std::ssize(g.ways);
    if (once > left_) return absences();
    best_ = result();
    while (one_otherwise() || two_otherwise()) {
    }
    return absences();
  }

  // Two otherwise are tried of those alone that are the best so far: that takes longest.
  Absences run_from_all() {
    Absences best = run();
    Result least = best_;
    const std::int64_t all = ways_of_all();
    for (std::int64_t number = 0; number < all && left_ > 0; ++number) {
      spend_all(number);
      best_ = result();
      while (one_otherwise()) {
      }
      if (best_ >= least) continue;
      while (one_otherwise() || two_otherwise()) {
      }
      least = best_;
      best = absences();
    }
    return best;
  }

 private:
  using Place = std::pair<std::int32_t, std::int32_t>;  // buffer, and the access before the gap
  using Way = std::optional<Absence>;                   // nothing: it stays
  // Bytes above the budget, then ns, then the peak: room that is left lets others stay.
  using Result = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  struct Gap {
    Place place;
    std::vector<Way> ways;
  };

  void add_gaps(std::int32_t b) {
    const BufferUses& uses = rehearsal_.uses()[static_cast<std::size_t>(b)];
    const Buffer& buffer = rehearsal_.program().buffers[static_cast<std::size_t>(b)];
    const bool home = std::ranges::binary_search(homes_, b);
    if ((buffer.state ? !home : !uses.movable)) return;
    for (std::int32_t k = 0; k + 1 < std::ssize(uses.accesses); ++k) {
      const Access &before = uses.accesses[static_cast<std::size_t>(k)],
                   &next = uses.accesses[static_cast<std::size_t>(k) + 1];
      if (before.arrives || next.instr - before.instr < 2) continue;
      gaps_.push_back({{b, k}, ways(b, k, before.instr, next.instr)});
      if (!buffer.state && next.reads) add_remakes(gaps_.back().ways, {b, k, before.instr, next.instr});
    }
  }

  // Of a long gap: its ends, and the middle.
  static std::vector<Way> ways(std::int32_t b, std::int32_t after, std::int32_t from, std::int32_t to) {
    const std::int32_t middle = from + (to - from) / 2;
    std::vector<std::int32_t> leave{from, from + 1, middle}, come_back{middle + 1, to - 1, to};
    if (to - from <= kAllWindows) {
      leave.resize(static_cast<std::size_t>(to - from));
      std::iota(leave.begin(), leave.end(), from);
      come_back.resize(leave.size());
      std::iota(come_back.begin(), come_back.end(), from + 1);
    }
    std::vector<Way> list{std::nullopt};
    for (const std::int32_t leaves : leave)
      for (const std::int32_t returns : come_back)
        if (leaves < returns) list.push_back(Absence{b, after, leaves, returns, -1});
    return list;
  }

  // From what is there then, or kept for it; of a long gap just before the use.
  void add_remakes(std::vector<Way>& ways, Absence of_all) const {
    of_all.maker = maker_of(rehearsal_.program(), rehearsal_.uses(), of_all.buffer, of_all.after);
    if (of_all.maker < 0) return;
    const std::int32_t last =
        std::min(of_all.returns, unchanged_until(rehearsal_.program(), rehearsal_.uses(), of_all.maker));
    const bool is_short = of_all.returns - of_all.leaves <= kAllWindows;
    for (std::int32_t at = is_short ? of_all.leaves + 1 : std::max(last, of_all.leaves + 1); at <= last;
         ++at) {
      ways.emplace_back(of_all);
      ways.back()->returns = at;
    }
  }

  // What comes back only to be written has no bytes to make something from.
  bool has_inputs(const Absence& remake) const {
    const auto has_bytes = [&](const Operand& o) {
      const std::vector<Access>& accesses = rehearsal_.uses()[o.buffer.index()].accesses;
      const auto next = std::ranges::lower_bound(accesses, remake.returns, {}, &Access::instr);
      if (next == accesses.end() || next->reads) return true;
      const auto before = static_cast<std::int32_t>(next - accesses.begin()) - 1;
      const auto away = spent_.find({static_cast<std::int32_t>(o.buffer.value), before});
      return away == spent_.end() || away->second.returns > remake.returns;
    };
    return std::ranges::all_of(rehearsal_.program().instrs[static_cast<std::size_t>(remake.maker)].in,
                               has_bytes);
  }

  // It stays, is away as long as it may be, or is made again just before it is used.
  static std::vector<Way> extremes(const Gap& gap) {
    Way away, again;
    for (const Way& way : gap.ways)
      if (way && way->maker >= 0)
        again = way;
      else if (way && (!away || way->leaves == away->leaves))
        away = way;
    std::vector<Way> list{std::nullopt, away};
    if (again) list.push_back(again);
    return list;
  }

  // 0: more than may be tried.
  std::int64_t ways_of_all() const {
    std::int64_t all = 1;
    for (const Gap& g : gaps_) {
      all *= std::ssize(extremes(g));
      if (all > left_) return 0;
    }
    return all;
  }

  void spend_all(std::int64_t number) {
    for (const Gap& g : gaps_) {
      const std::vector<Way> list = extremes(g);
      spend(g.place, list[static_cast<std::size_t>(number % std::ssize(list))]);
      number /= std::ssize(list);
    }
  }

  Absences absences() const {
    Absences a{{}, homes_};
    for (const auto& [place, absence] : spent_) a.list.push_back(absence);
    return a;
  }

  Result result() {
    --left_;
    for (const auto& [place, a] : spent_)
      if (a.maker >= 0 && !has_inputs(a)) return {kMost, 0, 0};
    const Rehearsal::Outcome o = rehearsal_.of(absences(), state_, budget_);
    return {std::max<std::int64_t>(0, (o.peak - budget_).value), o.timeline.length, o.peak.value};
  }

  // What was there before.
  Way spend(const Place& place, const Way& way) {
    const auto at = spent_.find(place);
    Way before = at == spent_.end() ? Way{} : Way{at->second};
    if (way)
      spent_[place] = *way;
    else if (at != spent_.end())
      spent_.erase(at);
    return before;
  }

  bool is_better() {
    const Result r = result();
    if (r >= best_) return false;
    best_ = r;
    return true;
  }

  bool one_otherwise() {
    for (const Gap& g : gaps_)
      for (const Way& way : g.ways) {
        if (left_ <= 0) return false;
        const Way before = spend(g.place, way);
        if (before == way) continue;
        if (is_better()) return true;
        spend(g.place, before);
      }
    return false;
  }

  bool two_otherwise() {
    for (std::size_t i = 0; i < gaps_.size(); ++i)
      for (const Way& way : gaps_[i].ways) {
        const Way before = spend(gaps_[i].place, way);
        if (before == way) continue;
        for (std::size_t j = i + 1; j < gaps_.size(); ++j)
          for (const Way& other : gaps_[j].ways) {
            if (left_ <= 0) return spend(gaps_[i].place, before), false;
            const Way other_before = spend(gaps_[j].place, other);
            if (other_before == other) continue;
            if (is_better()) return true;
            spend(gaps_[j].place, other_before);
          }
        spend(gaps_[i].place, before);
      }
    return false;
  }

  const Rehearsal& rehearsal_;
  std::vector<std::int32_t> homes_;
  Bytes state_, budget_;
  std::int64_t left_;  // rehearsals
  std::map<Place, Absence> spent_;
  std::vector<Gap> gaps_;
  Result best_{};
};

}  // namespace

Absences polished(const Rehearsal& rehearsal, Absences absences, Bytes state, Bytes budget,
                  std::int64_t most) {
  return Polishing(rehearsal, absences, state, budget, most).run();
}

Absences polished_from_all(const Rehearsal& rehearsal, Absences absences, Bytes state, Bytes budget,
                           std::int64_t most) {
  return Polishing(rehearsal, absences, state, budget, most).run_from_all();
}

}  // namespace hyperrun
