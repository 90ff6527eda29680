#include <algorithm>
#include <limits>

#include "runtime/offload/live_curve.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

std::int64_t aligned(Bytes bytes) { return (bytes.value + 63) / 64 * 64; }

class Retimer {
 public:
  Retimer(const OffloadProblem& problem, OffloadPlan& plan)
      : p_(problem), plan_(plan), n_(static_cast<std::int32_t>(problem.program.instrs.size())), curve_(n_) {
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
    for (const Eviction& a : plan_.evictions) live(a.leaves + 1, a.returns - 1, -bytes(a));
    changes.pop_back();
    curve_ = LiveCurve(changes);
  }

  void run() {
    std::vector<PendingPrefetch> fetches = prefetches_by_need();
    // Backwards: each prefetch ends when it is needed and before the next one begins.
    std::int64_t free = std::numeric_limits<std::int64_t>::max();
    for (auto f = fetches.rbegin(); f != fetches.rend(); ++f) {
      free = std::min(free, f->needed) - f->lasts;
      f->begins = free;
    }
    for (const PendingPrefetch& f : fetches) start(f);
  }

 private:
  struct PendingPrefetch {
    Eviction* eviction;
    std::int64_t needed, lasts, begins = 0;
  };

  std::int64_t bytes(const Eviction& a) const {
    return aligned(p_.program.buffers[static_cast<std::size_t>(a.buffer)].bytes);
  }

  std::int64_t transfer_of(const Eviction& a) const {
    const Buffer& buffer = p_.program.buffers[static_cast<std::size_t>(a.buffer)];
    return p_.transfer(buffer.bytes - buffer.empty).value;
  }

  struct PendingStore {
    Eviction* eviction;
    std::int64_t ready, lasts;  // ns; lasts is 0 if nothing is stored
  };

  // Lets each buffer leave when its Store ends. Stores queue in the order in which they become possible.
  void leave_when_stored() {
    std::vector<PendingStore> list;
    std::int32_t buffer = -1, since = 0;
    bool dirty = false;
    for (Eviction& a : plan_.evictions) {  // sorted by buffer and time
      if (a.buffer != buffer) buffer = a.buffer, since = 0, dirty = false;
      if (a.after < 0 || a.producer >= 0) continue;
      const auto& accesses = p_.uses[static_cast<std::size_t>(a.buffer)].accesses;
      for (; since <= a.after; ++since) dirty = dirty || accesses[static_cast<std::size_t>(since)].writes;
      const std::int32_t access = accesses[static_cast<std::size_t>(a.after)].instr;
      list.push_back({&a, p_.timeline.end[static_cast<std::size_t>(access)], dirty ? transfer_of(a) : 0});
      dirty = false;
    }
    std::ranges::stable_sort(list, {}, &PendingStore::ready);
    std::int64_t free = 0;
    for (const PendingStore& l : list) {
      if (l.lasts > 0) free = std::max(free, l.ready) + l.lasts;
      const auto& accesses = p_.uses[static_cast<std::size_t>(l.eviction->buffer)].accesses;
      const std::int32_t access = accesses[static_cast<std::size_t>(l.eviction->after)].instr;
      const std::int32_t done = l.lasts > 0 ? p_.timeline.first_from(free, access + 1) - 1 : access;
      l.eviction->leaves = std::min(l.eviction->leaves, done);
    }
  }

  std::vector<PendingPrefetch> prefetches_by_need() const {
    std::vector<PendingPrefetch> list;
    for (Eviction& a : plan_.evictions) {
      const auto& accesses = p_.uses[static_cast<std::size_t>(a.buffer)].accesses;
      const auto next = static_cast<std::size_t>(a.after + 1);
      if (a.producer >= 0 || next >= accesses.size() || !accesses[next].reads) continue;
      list.push_back({&a, p_.timeline.begin[static_cast<std::size_t>(accesses[next].instr)], transfer_of(a)});
    }
    std::ranges::stable_sort(list, {}, &PendingPrefetch::needed);
    return list;
  }

  // Begins half a transfer before the latest time, or as near to that as there is room.
  void start(const PendingPrefetch& f) {
    Eviction& a = *f.eviction;
    const std::int32_t wanted =
        std::max({p_.timeline.last_by(f.begins - f.lasts / 2, a.returns), a.leaves + 1, 0});
    const std::int32_t fits = curve_.last_above(wanted, a.returns - 1, p_.target.value - bytes(a)) + 1;
    curve_.add(fits, a.returns - 1, bytes(a));
    a.returns = fits;
  }

  const OffloadProblem& p_;
  OffloadPlan& plan_;
  std::int32_t n_;
  LiveCurve curve_;
};

}  // namespace

void retime(const OffloadProblem& problem, OffloadPlan& plan) { Retimer(problem, plan).run(); }

}  // namespace hyperrun
