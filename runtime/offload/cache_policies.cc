#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/time_limit.h"
#include "runtime/offload/policy.h"

namespace hyperrun {
namespace {

enum class Victim : std::uint8_t { kLeastRecentlyUsed, kFarthestNextUse };

// HBM as a cache of the lower tier. The Program is walked once, and each instruction fetches what it uses.
class Cache {
 public:
  Cache(const OffloadProblem& problem, Victim victim)
      : p_(problem),
        victim_(victim),
        n_(static_cast<std::int32_t>(problem.program.instrs.size())),
        buffers_(problem.program.buffers.size()) {
    for (const std::int32_t b : p_.offloaded_state) buffers_[static_cast<std::size_t>(b)].offloaded = true;
  }

  // Evicted state becomes offloaded state, which starts in the lower tier. So the walk is repeated until no
  // further state is evicted.
  OffloadPlan run() {
    for (;;) {
      check_time();
      begin();
      const std::size_t offloaded_state = count_offloaded();
      for (std::int32_t i = 0; i < n_; ++i) step(i);
      if (count_offloaded() == offloaded_state) return result();
    }
  }

 private:
  // Sort key of victims: the negated time of the next use (0 for LRU), then the last use.
  using Rank = std::pair<std::int64_t, std::int64_t>;
  struct BufferState {
    bool offloaded = false, resident = false;
    std::size_t next = 0;  // the next access
    Rank rank{};           // in victims_
    std::vector<Eviction> evictions;
  };

  std::size_t count_offloaded() const {
    return static_cast<std::size_t>(std::ranges::count(buffers_, true, &BufferState::offloaded));
  }

  const BufferUses& uses(std::int32_t b) const { return p_.uses[static_cast<std::size_t>(b)]; }
  const Buffer& buffer(std::int32_t b) const { return p_.program.buffers[static_cast<std::size_t>(b)]; }
  std::int64_t bytes(std::int32_t b) const { return (buffer(b).bytes.value + 63) / 64 * 64; }
  bool may_leave(std::int32_t b) const {
    const BufferState& h = buffers_[static_cast<std::size_t>(b)];
    if (h.next > 0 && uses(b).accesses[h.next - 1].arrives) return false;
    return h.offloaded || (uses(b).movable && (!buffer(b).state || p_.may_offload_state));
  }

  void begin() {
    live_ = 0;
    victims_.clear();
    for (std::int32_t b = 0; b < std::ssize(buffers_); ++b) {
      BufferState& h = buffers_[static_cast<std::size_t>(b)];
      h.resident = false;
      h.next = 0;
      h.evictions.clear();
      if (uses(b).accesses.empty() || buffer(b).tier != Tier::kHbm || !buffer(b).state) continue;
      h.offloaded ? h.evictions.push_back({b, -1, -1, n_}) : enter(b);
    }
  }

  void enter(std::int32_t b) {
    buffers_[static_cast<std::size_t>(b)].resident = true;
    live_ += bytes(b);
    rank(b);
  }

  void leave(std::int32_t b) {
    BufferState& h = buffers_[static_cast<std::size_t>(b)];
    h.resident = false;
    live_ -= bytes(b);
    victims_.erase({h.rank, b});
  }

  // Updates the buffer's place among the victims after a use.
  void rank(std::int32_t b) {
    BufferState& h = buffers_[static_cast<std::size_t>(b)];
    victims_.erase({h.rank, b});
    if (!may_leave(b)) return;
    h.rank = {victim_ == Victim::kLeastRecentlyUsed ? 0 : -next_use(b), ++clock_};
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
      BufferState& h = buffers_[static_cast<std::size_t>(b)];
      if (!h.resident) {
        if (!h.evictions.empty() && h.evictions.back().returns == n_) h.evictions.back().returns = i;
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
      BufferState& h = buffers_[static_cast<std::size_t>(b)];
      if (buffer(b).state) h.offloaded = true;
      h.evictions.push_back({b, static_cast<std::int32_t>(h.next) - 1, i - 1, n_});
      leave(b);
    }
  }

  // ns; of state the next use may be in the next invocation.
  std::int64_t next_use(std::int32_t b) const {
    const BufferState& h = buffers_[static_cast<std::size_t>(b)];
    const std::vector<Access>& accesses = uses(b).accesses;
    const bool wraps = h.next == accesses.size();
    const Access& next = accesses[wraps ? 0 : h.next];
    return p_.timeline.begin[static_cast<std::size_t>(next.instr)] + (wraps ? p_.timeline.length : 0);
  }

  // Offloaded state leaves HBM at the end of the Program.
  OffloadPlan result() {
    OffloadPlan out;
    for (std::int32_t b = 0; b < std::ssize(buffers_); ++b) {
      BufferState& h = buffers_[static_cast<std::size_t>(b)];
      const auto last = static_cast<std::int32_t>(uses(b).accesses.size()) - 1;
      if (h.offloaded && h.resident) h.evictions.push_back({b, last, n_ - 1, n_});
      out.evictions.insert(out.evictions.end(), h.evictions.begin(), h.evictions.end());
      if (h.offloaded) out.offloaded_state.push_back(b);
    }
    return out;
  }

  const OffloadProblem& p_;
  Victim victim_;
  std::int32_t n_;
  std::vector<BufferState> buffers_;
  std::set<std::pair<Rank, std::int32_t>> victims_;  // buffers in HBM that may leave; the first leaves first
  std::vector<std::int32_t> used_;                   // buffers of the current instruction, ascending
  std::int64_t live_ = 0, clock_ = 0;
};

}  // namespace

OffloadPlan lru_policy(const OffloadProblem& problem) {
  return Cache(problem, Victim::kLeastRecentlyUsed).run();
}

OffloadPlan belady_policy(const OffloadProblem& problem) {
  OffloadPlan plan = Cache(problem, Victim::kFarthestNextUse).run();
  retime(problem, plan);
  return plan;
}

}  // namespace hyperrun
