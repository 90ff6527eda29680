// Of candidates for a journey beyond HBM, which may be away at an instruction without holding anything up:
// their transfers find the streams free beside those of all that were taken before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/offload/gaps.h"
#include "runtime/offload/stream_time.h"
#include "runtime/offload/stretches.h"

namespace hyperrun {

class InSight {
 public:
  // These outlive it. A gap's `to` may become less later.
  InSight(const Timeline& timeline, const std::vector<Gap>& gaps, const std::vector<Candidate>& candidates);

  // Candidates are added from the last to the first: what is in time at instructions [first, last].
  void add(std::int32_t first, std::int32_t last, std::int32_t candidate);
  // Its transfers use their streams from now on.
  void use(const Candidate& c);

  // The first of those that help at the instruction that the streams have time for; without any, the first
  // that is made again; Stretches::kNone: neither. What is taken is left out for ever; `waits_for_home` says
  // of a candidate that it is to be left out as long as its home is not taken.
  std::int32_t first_at(std::int32_t at, const auto& waits_for_home) {
    std::int32_t first = Stretches::kNone;
    moved_.look_at(at, [&](std::int32_t id) {
      using enum Stretches::Look;
      if (first != Stretches::kNone && first < id) return kEnough;
      const Window w = windows_[static_cast<std::size_t>(id)];
      if (at < w.first || w.last < at) return w.first == kGone ? kGoes : kStays;
      const Candidate& c = candidates_[static_cast<std::size_t>(id)];
      if (is_taken(c)) return kGoes;
      if (waits_for_home(c) || !hides(c, id, at)) return kStays;
      first = id;
      return kEnough;
    });
    if (first != Stretches::kNone) return first;
    return again_.first_at(
        at, [&](std::int32_t id) { return !is_taken(candidates_[static_cast<std::size_t>(id)]); });
  }

 private:
  static constexpr std::int32_t kGone = std::numeric_limits<std::int32_t>::max();
  // Outside of it the candidate does not hide, and never will: transfers only become more.
  struct Window {
    std::int32_t first = -1, last = kGone;  // kGone as the last: it is not known; as the first: nowhere
  };

  bool is_taken(const Candidate& c) const { return c.taken || gaps_[c.first].taken; }
  bool hides(const Candidate& c, std::int32_t id, std::int32_t at);
  bool hides(const Gap& g, std::int32_t at) const;
  void narrow(Window& window, const Gap& gap) const;

  const std::vector<Gap>& gaps_;
  const std::vector<Candidate>& candidates_;
  StreamTime streams_;
  Stretches moved_, again_;
  std::vector<Window> windows_;  // by candidate; known of single gaps
};

}  // namespace hyperrun
