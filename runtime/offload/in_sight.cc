#include "runtime/offload/in_sight.h"

namespace hyperrun {

InSight::InSight(const Timeline& timeline, const std::vector<Gap>& gaps,
                 const std::vector<Candidate>& candidates)
    : gaps_(gaps),
      candidates_(candidates),
      streams_(timeline),
      moved_(static_cast<std::int32_t>(timeline.begin.size())),
      again_(static_cast<std::int32_t>(timeline.begin.size())),
      windows_(candidates.size()) {
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const Gap& gap = gaps[candidates[c].first];
    if (candidates[c].gaps == 1) windows_[c] = {gap.from + 1, gap.to - 1};
  }
}

void InSight::add(std::int32_t first, std::int32_t last, std::int32_t candidate) {
  const bool again = candidates_[static_cast<std::size_t>(candidate)].maker >= 0;
  (again ? again_ : moved_).add(first, last, candidate);
}

void InSight::use(const Candidate& c) {
  for (std::size_t i = c.first; i < c.first + c.gaps; ++i) {
    const Gap& g = gaps_[i];
    if (g.from >= 0) streams_.store(g.from, g.lasts);
    if (g.to < streams_.instrs() && g.fetches) streams_.prefetch(g.to, g.lasts);
  }
}

bool InSight::hides(const Candidate& c, std::int32_t id, std::int32_t at) {
  if (c.gaps > 1) {
    const Gap &begin = gaps_[c.first], &end = gaps_[c.first + 1];
    return hides(begin, at) && hides(end, at);
  }
  const Gap& gap = gaps_[c.first];
  if (!gap.covers(at)) return false;  // since it ends sooner it does not help here
  if (hides(gap, at)) return true;
  narrow(windows_[static_cast<std::size_t>(id)], gap);
  return false;
}

// Its transfers are over, or have not begun, when the instruction begins, also when others make way.
bool InSight::hides(const Gap& g, std::int32_t at) const {
  const bool covers = g.covers(at);
  if (g.from >= 0 && !streams_.has_for_store(g.from, covers ? at : g.to, g.lasts)) return false;
  return g.to >= streams_.instrs() || !g.fetches ||
         streams_.has_for_prefetch(covers ? at : g.from, g.to, g.lasts);
}

void InSight::narrow(Window& window, const Gap& gap) const {
  window.first = streams_.first_for_store(gap.from, window.first, window.last, gap.lasts);
  if (gap.fetches) window.last = streams_.last_for_prefetch(window.first, window.last, gap.to, gap.lasts);
  if (window.first > window.last) window.first = kGone;
}

}  // namespace hyperrun
