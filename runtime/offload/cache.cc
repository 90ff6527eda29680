#include <algorithm>
#include <set>
#include <utility>
#include <vector>

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
  using Rank = std::pair<std::int64_t, std::int64_t>;  // less its next use where that counts, its last use
  struct Held {
    bool home = false, resident = false;
    std::size_t next = 0;  // access
    Rank rank{};           // among the victims
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
    victims_.clear();
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
    buffers_[static_cast<std::size_t>(b)].resident = true;
    live_ += bytes(b);
    rank(b);
  }

  void leave(std::int32_t b) {
    Held& h = buffers_[static_cast<std::size_t>(b)];
    h.resident = false;
    live_ -= bytes(b);
    victims_.erase({h.rank, b});
  }

  // Among those that may leave, now that it has been used.
  void rank(std::int32_t b) {
    Held& h = buffers_[static_cast<std::size_t>(b)];
    victims_.erase({h.rank, b});
    if (!may_leave(b)) return;
    h.rank = {victim_ == Victim::kLeastRecentlyUsed ? 0 : -used_again(b), ++clock_};
    victims_.emplace(h.rank, b);
  }

  void step(std::int32_t i) {
    used_.clear();
    each_use(p_.program.instrs[static_cast<std::size_t>(i)],
             [&](const Operand& o, bool, bool) { used_.push_back(o.buffer.value); });
    std::ranges::sort(used_);
    used_.erase(std::ranges::unique(used_).begin(), used_.end());
    std::int64_t wanted = 0;
    for (const std::int32_t b : used_)
      if (!buffers_[static_cast<std::size_t>(b)].resident) wanted += bytes(b);
    make_room(i, wanted);
    for (const std::int32_t b : used_) {
      Held& h = buffers_[static_cast<std::size_t>(b)];
      if (!h.resident) {
        if (!h.absences.empty() && h.absences.back().returns == n_) h.absences.back().returns = i;
        enter(b);
      }
      ++h.next;
      const bool done = !buffer(b).state && h.next == uses(b).accesses.size();
      done ? leave(b) : rank(b);
    }
  }

  void make_room(std::int32_t i, std::int64_t wanted) {
    while (live_ + wanted > p_.target.value) {
      const auto victim = std::ranges::find_if(
          victims_, [&](const auto& v) { return !std::ranges::binary_search(used_, v.second); });
      if (victim == victims_.end()) return;
      const std::int32_t b = victim->second;
      Held& h = buffers_[static_cast<std::size_t>(b)];
      if (buffer(b).state) h.home = true;
      h.absences.push_back({b, static_cast<std::int32_t>(h.next) - 1, i - 1, n_});
      leave(b);
    }
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
  std::set<std::pair<Rank, std::int32_t>> victims_;  // resident, may leave: the first one first
  std::vector<std::int32_t> used_;                   // by the instruction, ascending
  std::int64_t live_ = 0, clock_ = 0;
};

}  // namespace

Absences react(const OffloadProblem& problem) { return Cache(problem, Victim::kLeastRecentlyUsed).run(); }

Absences plan_by_next_use(const OffloadProblem& problem) {
  Absences absences = Cache(problem, Victim::kLatestUsedAgain).run();
  retime(problem, absences);
  return absences;
}

}  // namespace hyperrun
