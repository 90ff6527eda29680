#include <algorithm>
#include <limits>

#include "runtime/offload/live_curve.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

std::int64_t aligned(Bytes bytes) { return (bytes.value + 63) / 64 * 64; }

class Retiming {
 public:
  Retiming(const OffloadProblem& problem, Absences& absences)
      : p_(problem),
        absences_(absences),
        n_(static_cast<std::int32_t>(problem.program.instrs.size())),
        curve_(n_) {
    std::vector<std::int64_t> changes(static_cast<std::size_t>(n_) + 1);
    const auto live = [&](std::int32_t first, std::int32_t last, std::int64_t bytes) {
      if (first > last) return;
      changes[static_cast<std::size_t>(first)] += bytes;
      changes[static_cast<std::size_t>(last) + 1] -= bytes;
    };
    for (std::size_t b = 0; b < p_.uses.size(); ++b) {
      const auto& accesses = p_.uses[b].accesses;
      const Buffer& buffer = p_.program.buffers[b];
      if (accesses.empty() || buffer.tier != Tier::kHbm) continue;
      live(buffer.state ? 0 : accesses.front().instr, buffer.state ? n_ - 1 : accesses.back().instr,
           aligned(buffer.bytes));
    }
    leave_when_stored();
    for (const Absence& a : absences_.list) live(a.leaves + 1, a.returns - 1, -bytes(a));
    changes.pop_back();
    curve_ = LiveCurve(changes);
  }

  void run() {
    std::vector<Fetch> fetches = fetches_by_need();
    // Backwards: each is done when it is needed, and when the next one has to begin.
    std::int64_t free = std::numeric_limits<std::int64_t>::max();
    for (auto f = fetches.rbegin(); f != fetches.rend(); ++f) {
      free = std::min(free, f->needed) - f->lasts;
      f->begins = free;
    }
    for (const Fetch& f : fetches) start(f);
  }

 private:
  struct Fetch {
    Absence* absence;
    std::int64_t needed, lasts, begins = 0;
  };

  std::int64_t bytes(const Absence& a) const {
    return aligned(p_.program.buffers[static_cast<std::size_t>(a.buffer)].bytes);
  }

  std::int64_t transfer_of(const Absence& a) const {
    const Buffer& buffer = p_.program.buffers[static_cast<std::size_t>(a.buffer)];
    return p_.transfer(buffer.bytes - buffer.empty).value;
  }

  struct Leaving {
    Absence* absence;
    std::int64_t ready, lasts;  // of nothing, where nothing is to be stored
  };

  // In the order in which they may, each Store once the one before it is done.
  void leave_when_stored() {
    std::vector<Leaving> list;
    std::int32_t buffer = -1, since = 0;
    bool dirty = false;
    for (Absence& a : absences_.list) {  // of a buffer, ascending
      if (a.buffer != buffer) buffer = a.buffer, since = 0, dirty = false;
      if (a.after < 0 || a.maker >= 0) continue;
      const auto& accesses = p_.uses[static_cast<std::size_t>(a.buffer)].accesses;
      for (; since <= a.after; ++since) dirty = dirty || accesses[static_cast<std::size_t>(since)].writes;
      const std::int32_t access = accesses[static_cast<std::size_t>(a.after)].instr;
      list.push_back({&a, p_.timeline.end[static_cast<std::size_t>(access)], dirty ? transfer_of(a) : 0});
      dirty = false;
    }
    std::ranges::stable_sort(list, {}, &Leaving::ready);
    std::int64_t free = 0;
    for (const Leaving& l : list) {
      if (l.lasts > 0) free = std::max(free, l.ready) + l.lasts;
      const auto& accesses = p_.uses[static_cast<std::size_t>(l.absence->buffer)].accesses;
      const std::int32_t access = accesses[static_cast<std::size_t>(l.absence->after)].instr;
      const std::int32_t done = l.lasts > 0 ? p_.timeline.first_from(free, access + 1) - 1 : access;
      l.absence->leaves = std::min(l.absence->leaves, done);
    }
  }

  std::vector<Fetch> fetches_by_need() const {
    std::vector<Fetch> list;
    for (Absence& a : absences_.list) {
      const auto& accesses = p_.uses[static_cast<std::size_t>(a.buffer)].accesses;
      const auto next = static_cast<std::size_t>(a.after + 1);
      if (a.maker >= 0 || next >= accesses.size() || !accesses[next].reads) continue;
      list.push_back({&a, p_.timeline.begin[static_cast<std::size_t>(accesses[next].instr)], transfer_of(a)});
    }
    std::ranges::stable_sort(list, {}, &Fetch::needed);
    return list;
  }

  // Half a transfer before it has to, or as near to that as there is room.
  void start(const Fetch& f) {
    Absence& a = *f.absence;
    const std::int32_t wanted =
        std::max({p_.timeline.last_by(f.begins - f.lasts / 2, a.returns), a.leaves + 1, 0});
    const std::int32_t fits = curve_.last_above(wanted, a.returns - 1, p_.target.value - bytes(a)) + 1;
    curve_.add(fits, a.returns - 1, bytes(a));
    a.returns = fits;
  }

  const OffloadProblem& p_;
  Absences& absences_;
  std::int32_t n_;
  LiveCurve curve_;
};

}  // namespace

void retime(const OffloadProblem& problem, Absences& absences) { Retiming(problem, absences).run(); }

}  // namespace hyperrun
