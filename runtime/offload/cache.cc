#include <algorithm>
#include <limits>
#include <list>
#include <set>

#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

enum class Victim : std::uint8_t { kLeastRecentlyUsed, kLatestUsedAgain };

// A cache of HBM that is looked after while the Program runs, with what is beyond it as its backing.
class Cache {
 public:
  Cache(const OffloadProblem& problem, Victim victim)
      : p_(problem),
        victim_(victim),
        n_(static_cast<std::int32_t>(problem.program.instrs.size())),
        buffers_(problem.program.buffers.size()) {
    for (const std::int32_t b : p_.homes) buffers_[static_cast<std::size_t>(b)].home = true;
  }

  // State that had to make room has its home beyond HBM, from the beginning: then it starts there.
  Absences run() {
    for (;;) {
      begin();
      const std::size_t homes = homes_of_now();
      for (std::int32_t i = 0; i < n_; ++i) step(i);
      if (homes_of_now() == homes) return result();
    }
  }

 private:
  struct Held {
    bool home = false, resident = false;
    std::size_t next = 0;  // access
    std::list<std::int32_t>::iterator in_use;
    std::vector<Absence> absences;
  };

  std::size_t homes_of_now() const {
    return static_cast<std::size_t>(std::ranges::count(buffers_, true, &Held::home));
  }

  const BufferUses& uses(std::int32_t b) const { return p_.uses[static_cast<std::size_t>(b)]; }
  const Buffer& buffer(std::int32_t b) const { return p_.program.buffers[static_cast<std::size_t>(b)]; }
  std::int64_t bytes(std::int32_t b) const { return (buffer(b).bytes.value + 63) / 64 * 64; }
  bool may_leave(std::int32_t b) const {
    const Held& h = buffers_[static_cast<std::size_t>(b)];
    if (h.next > 0 && uses(b).accesses[h.next - 1].arrives) return false;
    return h.home || (uses(b).movable && (!buffer(b).state || p_.new_homes));
  }

  void begin() {
    live_ = 0;
    least_recent_.clear();
    for (std::int32_t b = 0; b < std::ssize(buffers_); ++b) {
      Held& h = buffers_[static_cast<std::size_t>(b)];
      h.resident = false;
      h.next = 0;
      h.absences.clear();
      if (uses(b).accesses.empty() || buffer(b).tier != Tier::kHbm || !buffer(b).state) continue;
      h.home ? h.absences.push_back({b, -1, -1, n_}) : enter(b);
    }
  }

  void enter(std::int32_t b) {
    Held& h = buffers_[static_cast<std::size_t>(b)];
    h.resident = true;
    live_ += bytes(b);
    h.in_use = least_recent_.insert(least_recent_.end(), b);
  }

  void leave(std::int32_t b) {
    Held& h = buffers_[static_cast<std::size_t>(b)];
    h.resident = false;
    live_ -= bytes(b);
    least_recent_.erase(h.in_use);
  }

  void step(std::int32_t i) {
    std::set<std::int32_t> used;
    each_use(p_.program.instrs[static_cast<std::size_t>(i)],
             [&](const Operand& o, bool, bool) { used.insert(o.buffer.value); });
    std::int64_t wanted = 0;
    for (const std::int32_t b : used)
      if (!buffers_[static_cast<std::size_t>(b)].resident) wanted += bytes(b);
    make_room(i, wanted, used);
    for (const std::int32_t b : used) {
      Held& h = buffers_[static_cast<std::size_t>(b)];
      if (!h.resident) {
        if (!h.absences.empty() && h.absences.back().returns == n_) h.absences.back().returns = i;
        enter(b);
      }
      least_recent_.splice(least_recent_.end(), least_recent_, h.in_use);
      ++h.next;
    }
    for (const std::int32_t b : used) {
      const Held& h = buffers_[static_cast<std::size_t>(b)];
      if (!buffer(b).state && h.next == uses(b).accesses.size()) leave(b);
    }
  }

  void make_room(std::int32_t i, std::int64_t wanted, const std::set<std::int32_t>& used) {
    while (live_ + wanted > p_.target.value) {
      const std::int32_t b = next_victim(used);
      if (b < 0) return;
      Held& h = buffers_[static_cast<std::size_t>(b)];
      if (buffer(b).state) h.home = true;
      h.absences.push_back({b, static_cast<std::int32_t>(h.next) - 1, i - 1, n_});
      leave(b);
    }
  }

  std::int32_t next_victim(const std::set<std::int32_t>& used) const {
    std::int32_t victim = -1;
    std::int64_t latest = -1;
    for (const std::int32_t b : least_recent_) {
      if (used.contains(b) || !may_leave(b)) continue;
      if (victim_ == Victim::kLeastRecentlyUsed) return b;
      if (const std::int64_t again = used_again(b); again > latest) latest = again, victim = b;
    }
    return victim;
  }

  // When, of state perhaps in the next invocation.
  std::int64_t used_again(std::int32_t b) const {
    const Held& h = buffers_[static_cast<std::size_t>(b)];
    const std::vector<Access>& accesses = uses(b).accesses;
    const bool wraps = h.next == accesses.size();
    const Access& next = accesses[wraps ? 0 : h.next];
    return p_.timeline.begin[static_cast<std::size_t>(next.instr)] + (wraps ? p_.timeline.length : 0);
  }

  // Homes end the Program beyond HBM.
  Absences result() {
    Absences out;
    for (std::int32_t b = 0; b < std::ssize(buffers_); ++b) {
      Held& h = buffers_[static_cast<std::size_t>(b)];
      const auto last = static_cast<std::int32_t>(uses(b).accesses.size()) - 1;
      if (h.home && h.resident) h.absences.push_back({b, last, n_ - 1, n_});
      out.list.insert(out.list.end(), h.absences.begin(), h.absences.end());
      if (h.home) out.homes.push_back(b);
    }
    return out;
  }

  const OffloadProblem& p_;
  Victim victim_;
  std::int32_t n_;
  std::vector<Held> buffers_;
  std::list<std::int32_t> least_recent_;  // resident ones, the least recently used first
  std::int64_t live_ = 0;
};

}  // namespace

Absences react(const OffloadProblem& problem) { return Cache(problem, Victim::kLeastRecentlyUsed).run(); }

Absences plan_by_next_use(const OffloadProblem& problem) {
  Absences absences = Cache(problem, Victim::kLatestUsedAgain).run();
  retime(problem, absences);
  return absences;
}

}  // namespace hyperrun
