// Finds candidates whose transfers can be hidden: the transfer streams have time for them beside the
// transfers of all candidates taken before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/offload/gaps.h"
#include "runtime/offload/interval_index.h"
#include "runtime/offload/stream_time.h"

namespace hyperrun {

class TransferSlack {
 public:
  // The arguments outlive it. A gap's `to` may become smaller later.
  TransferSlack(const Timeline& timeline, const std::vector<Gap>& gaps,
                const std::vector<Candidate>& candidates);

  // Adds a candidate that frees memory at instructions [first, last]. Callers add the last candidate first.
  void add(std::int32_t first, std::int32_t last, std::int32_t candidate);
  // Reserves time on the streams for a candidate's transfers.
  void use(const Candidate& c);

  // The first candidate that frees memory at instruction `at` with hidden transfers. If there is none, the
  // first that is rematerialized; else IntervalIndex::kNone. Taken candidates are dropped for good.
  // `waits_for_state(candidate)`: skip it for now, as its state is not offloaded yet.
  std::int32_t first_at(std::int32_t at, const auto& waits_for_state) {
    std::int32_t first = IntervalIndex::kNone;
    moved_.look_at(at, [&](std::int32_t id) {
      using enum IntervalIndex::Look;
      if (first != IntervalIndex::kNone && first < id) return kStop;
      const Window w = windows_[static_cast<std::size_t>(id)];
      if (at < w.first || w.last < at) return w.first == kNowhere ? kRemove : kKeep;
      const Candidate& c = candidates_[static_cast<std::size_t>(id)];
      if (is_taken(c)) return kRemove;
      if (waits_for_state(c) || !is_hidden(c, id, at)) return kKeep;
      first = id;
      return kStop;
    });
    if (first != IntervalIndex::kNone) return first;
    return rematerialized_.first_at(
        at, [&](std::int32_t id) { return !is_taken(candidates_[static_cast<std::size_t>(id)]); });
  }

 private:
  static constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();
  // The instructions at which a candidate's transfers may be hidden. It only shrinks, as transfers are only
  // added. Both bounds may be too wide; `first` is kNowhere when the window is empty.
  struct Window {
    std::int32_t first = -1, last = kNowhere;
  };

  bool is_taken(const Candidate& c) const { return c.taken || gaps_[c.first].taken; }
  bool is_hidden(const Candidate& c, std::int32_t id, std::int32_t at);
  bool is_hidden(const Gap& g, std::int32_t at) const;
  void narrow(Window& window, const Gap& gap) const;

  const std::vector<Gap>& gaps_;
  const std::vector<Candidate>& candidates_;
  StreamTime streams_;
  IntervalIndex moved_;           // candidates that are stored and fetched
  IntervalIndex rematerialized_;  // candidates with a producer
  std::vector<Window> windows_;   // by candidate; only candidates of one gap are narrowed
};

}  // namespace hyperrun
