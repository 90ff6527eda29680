#include "runtime/offload/polish.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace hyperrun {
namespace {

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
    note_frozen();
    for (std::int32_t b = 0; b < std::ssize(rehearsal.uses()); ++b) add_gaps(b);
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

 private:
  using Place = std::pair<std::int32_t, std::int32_t>;  // buffer, and the access before the gap
  using Way = std::optional<Absence>;                   // nothing: it stays
  // Bytes above the budget, then ns, then the peak: room that is left lets others stay.
  using Result = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  struct Gap {
    Place place;
    std::vector<Way> ways;
  };

  // What is made again is made from what is there then.
  void note_frozen() {
    for (const auto& [place, a] : spent_)
      if (a.maker >= 0) {
        frozen_.insert(a.buffer);
        for (const Operand& o : rehearsal_.program().instrs[static_cast<std::size_t>(a.maker)].in)
          frozen_.insert(o.buffer.value);
      }
  }

  void add_gaps(std::int32_t b) {
    const BufferUses& uses = rehearsal_.uses()[static_cast<std::size_t>(b)];
    const Buffer& buffer = rehearsal_.program().buffers[static_cast<std::size_t>(b)];
    const bool home = std::ranges::binary_search(homes_, b);
    if ((buffer.state ? !home : !uses.movable) || frozen_.contains(b)) return;
    for (std::int32_t k = 0; k + 1 < std::ssize(uses.accesses); ++k) {
      const Access &before = uses.accesses[static_cast<std::size_t>(k)],
                   &next = uses.accesses[static_cast<std::size_t>(k) + 1];
      if (before.arrives || next.instr - before.instr < 2) continue;
      gaps_.push_back({{b, k}, ways(b, k, before.instr, next.instr)});
    }
  }

  // Of a long gap only its ends and its middle: a step may have a hundred thousand instructions.
  static std::vector<Way> ways(std::int32_t b, std::int32_t after, std::int32_t from, std::int32_t to) {
    const std::int32_t middle = from + (to - from) / 2;
    std::set<std::int32_t> leaving{from, from + 1, middle}, returning{middle + 1, to - 1, to};
    if (to - from <= kAllWindows)
      for (std::int32_t i = from; i < to; ++i) leaving.insert(i), returning.insert(i + 1);
    std::vector<Way> list{std::nullopt};
    for (const std::int32_t leaves : leaving)
      for (const std::int32_t returns : returning)
        if (leaves < returns) list.push_back(Absence{b, after, leaves, returns, -1});
    return list;
  }

  Absences absences() const {
    Absences a{{}, homes_};
    for (const auto& [place, absence] : spent_) a.list.push_back(absence);
    return a;
  }

  Result result() {
    --left_;
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
  std::set<std::int32_t> frozen_;  // buffers
  std::vector<Gap> gaps_;
  Result best_{};
};

}  // namespace

Absences polished(const Rehearsal& rehearsal, Absences absences, Bytes state, Bytes budget,
                  std::int64_t most) {
  return Polishing(rehearsal, absences, state, budget, most).run();
}

}  // namespace hyperrun
