#include "runtime/offload/transfer_slack.h"

namespace hyperrun {

TransferSlack::TransferSlack(const Timeline& timeline, const std::vector<Gap>& gaps,
                             const std::vector<Candidate>& candidates)
    : gaps_(gaps),
      candidates_(candidates),
      streams_(timeline),
      moved_(static_cast<std::int32_t>(timeline.begin.size())),
      rematerialized_(static_cast<std::int32_t>(timeline.begin.size())),
      windows_(candidates.size()) {
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const Gap& gap = gaps[candidates[c].first];
    if (candidates[c].gaps == 1) windows_[c] = {gap.from + 1, gap.to - 1};
  }
}

void TransferSlack::add(std::int32_t first, std::int32_t last, std::int32_t candidate) {
  const bool rematerializes = candidates_[static_cast<std::size_t>(candidate)].producer >= 0;
  (rematerializes ? rematerialized_ : moved_).add(first, last, candidate);
}

void TransferSlack::use(const Candidate& c) {
  for (std::size_t i = c.first; i < c.first + c.gaps; ++i) {
    const Gap& g = gaps_[i];
    if (g.from >= 0) streams_.store(g.from, g.transfer_ns);
    if (g.to < streams_.instrs() && g.fetches) streams_.prefetch(g.to, g.transfer_ns);
  }
}

bool TransferSlack::is_hidden(const Candidate& c, std::int32_t id, std::int32_t at) {
  if (c.gaps > 1) {
    const Gap &begin = gaps_[c.first], &end = gaps_[c.first + 1];
    return is_hidden(begin, at) && is_hidden(end, at);
  }
  const Gap& gap = gaps_[c.first];
  if (!gap.covers(at)) return false;  // the gap was shortened and no longer covers `at`
  if (is_hidden(gap, at)) return true;
  narrow(windows_[static_cast<std::size_t>(id)], gap);
  return false;
}

// The gap's Store ends before `at`, and its Prefetch begins after it, with all other transfers in time too.
bool TransferSlack::is_hidden(const Gap& g, std::int32_t at) const {
  const bool covers = g.covers(at);
  if (g.from >= 0 && !streams_.has_for_store(g.from, covers ? at : g.to, g.transfer_ns)) return false;
  return g.to >= streams_.instrs() || !g.fetches ||
         streams_.has_for_prefetch(covers ? at : g.from, g.to, g.transfer_ns);
}

void TransferSlack::narrow(Window& window, const Gap& gap) const {
  window.first = streams_.first_for_store(gap.from, window.first, window.last, gap.transfer_ns);
  if (gap.fetches)
    window.last = streams_.last_for_prefetch(window.first, window.last, gap.to, gap.transfer_ns);
  if (window.first > window.last) window.first = kNowhere;
}

}  // namespace hyperrun
