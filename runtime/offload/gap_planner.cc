#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/time_limit.h"
#include "runtime/offload/gaps.h"
#include "runtime/offload/interval_index.h"
#include "runtime/offload/live_curve.h"
#include "runtime/offload/policy.h"
#include "runtime/offload/rematerialize.h"
#include "runtime/offload/transfer_slack.h"

namespace hyperrun {
namespace {

constexpr int kRounds = 64;
constexpr std::int64_t kExcluded = std::int64_t{1} << 60;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The order in which candidates are taken.
enum class Priority : std::uint8_t {
  kWorth,   // the highest worth first
  kHidden,  // likewise, but state whose transfers crowd the ends of the Program comes last
  kSlack,   // first the candidates whose transfers find free time on the streams
};

class GapPlanner {
 public:
  GapPlanner(const OffloadProblem& problem, Priority priority, bool rematerializes)
      : p_(problem),
        n_(static_cast<std::int32_t>(problem.program.instrs.size())),
        curve_(n_),
        covering_(n_),
        in_time_(n_),
        rematerializes_(rematerializes),
        gaps_of_(problem.uses.size()) {
    const bool hidden_first = priority == Priority::kHidden;
    changes_.resize(static_cast<std::size_t>(n_) + 1);
    for (std::size_t b = 0; b < p_.uses.size(); ++b) add_buffer(static_cast<std::int32_t>(b));
    mark_crowded();
    sort_candidates(hidden_first);
    if (priority == Priority::kSlack) slack_.emplace(p_.timeline, gaps_, candidates_);
    curve_.set(changes_);
    for (std::size_t g = 0; g < gaps_.size(); ++g)
      if (gaps_[g].taken) evict_first(gaps_[g]);
    state_candidate_.resize(p_.uses.size(), kNone);
    for (std::size_t c = candidates_.size(); c-- > 0;) {
      const Candidate& candidate = candidates_[c];
      if (candidate.offloads_state) state_candidate_[static_cast<std::size_t>(buffer_of(candidate))] = c;
      for (std::size_t g = candidate.first; g < candidate.first + candidate.gaps; ++g) {
        const auto id = static_cast<std::int32_t>(c);
        covering_.add(gaps_[g].from + 1, gaps_[g].to - 1, id);
        const bool moves = candidate.producer < 0;
        if (moves && hidden_first && candidate.crowded) continue;
        const std::int32_t begin = (moves ? gaps_[g].stored : gaps_[g].from) + 1,
                           end = (moves ? gaps_[g].fetched : gaps_[g].to) - 1;
        in_time_.add(begin, end, id);
        if (slack_) slack_->add(begin, end, id);
      }
    }
  }

  OffloadPlan run() {
    for (int round = 0; round < kRounds; ++round) {
      const bool more = select();
      queue_transfers();
      if (curve_.highest() <= p_.target.value || !more) break;
    }
    squeeze();
    return result();
  }

 private:
  static std::int64_t aligned(Bytes bytes) { return (bytes.value + 63) / 64 * 64; }

  void add_buffer(std::int32_t b) {
    const BufferUses& uses = p_.uses[static_cast<std::size_t>(b)];
    const Buffer& buffer = p_.program.buffers[static_cast<std::size_t>(b)];
    if (uses.accesses.empty() || buffer.tier != Tier::kHbm) return;
    const std::int32_t first = uses.accesses.front().instr, last = uses.accesses.back().instr;
    changes_[static_cast<std::size_t>(buffer.state ? 0 : first)] += aligned(buffer.bytes);
    changes_[static_cast<std::size_t>(buffer.state ? n_ : last + 1)] -= aligned(buffer.bytes);
    const bool offloaded = std::ranges::binary_search(p_.offloaded_state, b);
    if (!uses.movable && !offloaded) return;
    transfer_ns_ = p_.transfer(buffer.bytes - buffer.empty).value;
    for (std::int32_t k = 0; k + 1 < std::ssize(uses.accesses); ++k)
      if (!buffer.state || offloaded || p_.may_offload_state) add_gap(b, k, buffer.state && !offloaded);
    if (buffer.state && (offloaded || p_.may_offload_state)) add_ends(b, offloaded);
  }

  Gap gap(std::int32_t b, std::int32_t after) const {
    const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(b)].accesses;
    const Bytes bytes = p_.program.buffers[static_cast<std::size_t>(b)].bytes;
    Gap g{b, after, -1, n_, aligned(bytes), transfer_ns_};
    g.needed = p_.timeline.length;
    if (after >= 0) {
      g.from = accesses[static_cast<std::size_t>(after)].instr;
      g.ready = p_.timeline.end[static_cast<std::size_t>(g.from)];
    }
    if (after + 1 < std::ssize(accesses)) {
      const Access& next = accesses[static_cast<std::size_t>(after) + 1];
      g.to = next.instr;
      g.fetches = next.reads;
      g.needed = p_.timeline.begin[static_cast<std::size_t>(g.to)];
    }
    g.latest_leave = g.to;
    g.first_return = g.from;
    g.stored = leaves_at(g, g.ready + g.transfer_ns);
    g.fetched = returns_at(g, g.needed - g.transfer_ns);
    return g;
  }

  void add_gap(std::int32_t b, std::int32_t after, bool needs_state) {
    const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(b)].accesses;
    const auto k = static_cast<std::size_t>(after);
    if (accesses[k].arrives || accesses[k + 1].instr - accesses[k].instr < 2) return;
    const Gap g = gap(b, after);
    candidates_.push_back({gaps_.size(), 1, worth(g.needed - g.ready, 2 * g.transfer_ns)});
    if (const std::int32_t m = rematerializes_ && !needs_state ? producer_before(b, after, g.to) : -1;
        m >= 0) {
      candidates_.push_back({gaps_.size(), 1, worth(g.needed - g.ready, duration(m))});
      candidates_.back().producer = m;
    }
    gaps_of_[static_cast<std::size_t>(b)].push_back(gaps_.size());
    needs_offloaded_state_.push_back(needs_state);
    gaps_.push_back(g);
  }

  void add_ends(std::int32_t b, bool offloaded) {
    const Gap begin = gap(b, -1),
              end =
                  gap(b, static_cast<std::int32_t>(p_.uses[static_cast<std::size_t>(b)].accesses.size()) - 1);
    const std::int64_t late =
        std::max<std::int64_t>(0, begin.fetches ? begin.transfer_ns - begin.needed : 0) +
        std::max<std::int64_t>(0, end.ready + end.transfer_ns - p_.timeline.length);
    candidates_.push_back({gaps_.size(), 2,
                           worth(begin.needed + p_.timeline.length - end.ready, 2 * begin.transfer_ns), true,
                           late});
    for (const Gap& g : {begin, end}) gaps_.push_back(g), needs_offloaded_state_.push_back(false);
    if (offloaded) mark(candidates_.back()), candidates_.pop_back();
  }

  // Sorts by rank. Drops gaps in which nothing is over the target even before evictions.
  void sort_candidates(bool hidden_first) {
    std::vector<std::int32_t> next_over(changes_.size() + 1, n_);  // from an instruction on
    std::int64_t live = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (live += changes_[i]; live > p_.target.value) next_over[i] = static_cast<std::int32_t>(i);
    for (std::size_t i = changes_.size(); i-- > 0;) next_over[i] = std::min(next_over[i], next_over[i + 1]);
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Gap& g = gaps_[candidates_[c].first];
      if (candidates_[c].offloads_state || next_over[static_cast<std::size_t>(g.from + 1)] < g.to)
        order.push_back(c);
    }
    sort_by(order, [&](std::size_t c) { return candidates_[c].rank(hidden_first); });
    std::vector<Candidate> sorted;
    sorted.reserve(order.size());
    for (const std::size_t c : order) sorted.push_back(candidates_[c]);
    candidates_ = std::move(sorted);
  }

  // Finds the candidates whose transfers could not be hidden if all state were offloaded: at each end of the
  // Program they queue for the same time.
  void mark_crowded() {
    std::vector<Candidate*> of_state;
    for (Candidate& c : candidates_)
      if (c.offloads_state) of_state.push_back(&c);
    const auto begin = [&](const Candidate* c) -> const Gap& { return gaps_[c->first]; };
    const auto end = [&](const Candidate* c) -> const Gap& { return gaps_[c->first + 1]; };
    std::ranges::stable_sort(of_state, {}, [&](const Candidate* c) { return begin(c).needed; });
    std::int64_t sum = 0;
    for (Candidate* c : of_state) {
      if (begin(c).fetches) sum += begin(c).transfer_ns;
      c->crowded = sum > begin(c).needed;
    }
    std::ranges::stable_sort(of_state, std::greater{}, [&](const Candidate* c) { return end(c).ready; });
    sum = 0;
    for (Candidate* c : of_state) {
      sum += end(c).transfer_ns;
      c->crowded = c->crowded || end(c).ready + sum > p_.timeline.length;
    }
    std::vector<bool> crowded(p_.uses.size());
    for (const Candidate* c : of_state) crowded[static_cast<std::size_t>(buffer_of(*c))] = c->crowded;
    for (Candidate& c : candidates_)
      c.crowded =
          c.crowded || (needs_offloaded_state_[c.first] && crowded[static_cast<std::size_t>(buffer_of(c))]);
  }

  static double worth(std::int64_t away, std::int64_t costs) {
    return static_cast<double>(away) / static_cast<double>(std::max<std::int64_t>(costs, 1));
  }

  // --- rematerialization ------------------------------------------------------------------------------

  std::int64_t duration(std::int32_t instr) const {
    return p_.timeline.end[static_cast<std::size_t>(instr)] -
           p_.timeline.begin[static_cast<std::size_t>(instr)];
  }

  // The instruction that can restore a buffer before instruction `to`; -1: none. Its inputs must be unchanged
  // and must be read at `to` or later. An input whose next access only writes (a message, for example) would
  // be back in HBM without its bytes.
  std::int32_t producer_before(std::int32_t b, std::int32_t after, std::int32_t to) const {
    const std::int32_t m = producer_of(p_.program, p_.uses, b, after);
    if (m < 0 || inputs_unchanged_until(p_.program, p_.uses, m) <= to) return -1;
    const auto is_read = [&](const Operand& o) {
      const std::vector<Access>& list = p_.uses[o.buffer.index()].accesses;
      const auto next = std::ranges::lower_bound(list, to, {}, &Access::instr);
      return next != list.end() && next->reads;
    };
    return std::ranges::all_of(p_.program.instrs[static_cast<std::size_t>(m)].in, is_read) ? m : -1;
  }

  // Makes a buffer return before instruction `at`, where a rematerialization reads it.
  void need(std::size_t buffer, std::int32_t at) {
    for (const std::size_t g : gaps_of_[buffer]) {
      Gap& gap = gaps_[g];
      if (!gap.covers(at)) continue;
      gap.to = at;
      gap.needed = p_.timeline.begin[static_cast<std::size_t>(at)];
      by_needed_.clear();
      gap.fetched = returns_at(gap, gap.needed - gap.transfer_ns);
      if (!gap.taken) return;
      evict(gap, gap.leaves, gap.returns);
      if (gap.producer >= 0) need_inputs(gap);
      return;
    }
  }

  void need_inputs(const Gap& gap) {
    for (const Operand& o : p_.program.instrs[static_cast<std::size_t>(gap.producer)].in)
      need(o.buffer.index(), gap.to);
  }

  // --- choice of gaps -------------------------------------------------------------------------------

  // Takes gaps until no instruction is over the target or no gap helps. Returns whether any gap was taken.
  bool select() {
    const std::size_t before = taken_.size();
    std::vector<std::int32_t> excluded;
    while (curve_.highest() > p_.target.value) {
      check_time();
      const std::int32_t at = curve_.where();
      const auto is_free = [&](std::int32_t c) {
        const Candidate& candidate = candidates_[static_cast<std::size_t>(c)];
        return !candidate.taken && !gaps_[candidate.first].taken;
      };
      std::int32_t found = IntervalIndex::kNone;
      if (slack_) found = slack_->first_at(at, [&](const Candidate& c) { return waits_for_state(c); });
      if (found == IntervalIndex::kNone) found = in_time_.first_at(at, is_free);
      if (found == IntervalIndex::kNone) found = covering_.first_at(at, is_free);
      if (found == IntervalIndex::kNone) {
        excluded.push_back(at), curve_.add(at, at, -kExcluded);
        continue;
      }
      auto best = static_cast<std::size_t>(found);
      // State must be offloaded before it can be evicted amid the Program; that may already be enough.
      std::size_t& of_state = state_candidate_[static_cast<std::size_t>(buffer_of(candidates_[best]))];
      if (waits_for_state(candidates_[best])) best = of_state;
      if (candidates_[best].offloads_state) of_state = kNone;
      take(candidates_[best]);
    }
    for (const std::int32_t at : excluded) curve_.add(at, at, kExcluded);
    return taken_.size() > before;
  }

  // The candidate evicts state that has not been offloaded yet.
  bool waits_for_state(const Candidate& c) const {
    return needs_offloaded_state_[c.first] &&
           state_candidate_[static_cast<std::size_t>(buffer_of(c))] != kNone;
  }

  std::int32_t buffer_of(const Candidate& c) const { return gaps_[c.first].buffer; }

  // Gap::leaves if the Store ends at `time`.
  std::int32_t leaves_at(const Gap& g, std::int64_t time) const {
    if (g.from < 0) return -1;
    return p_.timeline.first_from(time, g.from + 1) - 1;
  }

  // Gap::returns if the Prefetch begins at `time`.
  std::int32_t returns_at(const Gap& g, std::int64_t time) const {
    if (g.to == n_) return n_;
    return std::max(p_.timeline.last_by(time, g.to), 0);
  }

  void take(Candidate& c) {
    mark(c);
    if (c.offloads_state && !std::ranges::binary_search(p_.offloaded_state, buffer_of(c)))
      newly_offloaded_.push_back(buffer_of(c));
    for (std::size_t g = c.first; g < c.first + c.gaps; ++g) evict_first(gaps_[g]);
    if (slack_ && c.producer < 0) slack_->use(c);
  }

  void mark(Candidate& c) {
    c.taken = true;
    for (std::size_t g = c.first; g < c.first + c.gaps; ++g) {
      taken_.push_back(g);
      gaps_[g].taken = true;
      gaps_[g].producer = c.producer;
      gaps_[g].leaves = gaps_[g].from;
      gaps_[g].returns = gaps_[g].from + 1;
    }
  }

  void evict_first(Gap& g) {
    if (g.producer < 0) return evict(g, g.stored, g.fetched);
    evict(g, g.from, g.to);
    need_inputs(g);
  }

  // Sets the time of absence, clamped to the gap and to the limits that squeezing has set.
  static void set(Gap& g, std::int32_t leaves, std::int32_t returns) {
    g.returns = std::clamp(returns, std::max(g.from + 1, g.first_return), g.to);
    g.leaves = std::clamp(leaves, g.from, std::min({g.returns - 1, g.latest_leave, g.to - 1}));
  }

  // Adds bytes to the live bytes between the two.
  void note_change(std::int32_t leaves, std::int32_t returns, std::int64_t bytes) {
    if (leaves + 1 >= returns) return;
    changes_[static_cast<std::size_t>(leaves) + 1] += bytes;
    changes_[static_cast<std::size_t>(returns)] -= bytes;
  }

  void evict(Gap& g, std::int32_t leaves, std::int32_t returns) {
    const std::int32_t left = g.leaves, returned = g.returns;
    set(g, leaves, returns);
    note_change(left, returned, g.bytes);
    note_change(g.leaves, g.returns, -g.bytes);
    const bool meet = g.leaves + 1 < returned && left + 1 < g.returns && left + 1 < returned;
    if (meet) {  // the old and the new absence overlap: only their ends change
      curve_.add(g.leaves + 1, left, -g.bytes);
      curve_.add(left + 1, g.leaves, g.bytes);
      curve_.add(g.returns, returned - 1, g.bytes);
      curve_.add(returned, g.returns - 1, -g.bytes);
    } else {
      curve_.add(left + 1, returned - 1, g.bytes);
      curve_.add(g.leaves + 1, g.returns - 1, -g.bytes);
    }
  }

  // --- times ----------------------------------------------------------------------------------------

  // Merges newly taken gaps into a sorted list; equal keys keep the order of taking.
  template <class Key>
  void insert_taken(std::vector<std::size_t>& order, Key key_of) const {
    std::vector<std::size_t> more(taken_.begin() + std::ssize(order), taken_.end());
    if (more.empty()) return;
    sort_by(more, key_of);
    order.insert(order.end(), more.begin(), more.end());
    std::ranges::inplace_merge(order, order.end() - std::ssize(more), {}, key_of);
  }

  // Marks the gaps whose buffer was written since it was last stored.
  std::vector<bool> stores() {
    // Gaps of one buffer ascend, except for the one before its first use, which stores nothing.
    insert_taken(by_number_, [](std::size_t g) { return g; });
    std::vector<bool> store(gaps_.size(), false);
    std::int32_t buffer = -1, since = 0;
    for (const std::size_t i : by_number_) {
      const Gap& g = gaps_[i];
      if (g.buffer != buffer) buffer = g.buffer, since = 0;
      if (g.producer >= 0) continue;
      const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(buffer)].accesses;
      for (; since <= g.after; ++since)
        store[i] = store[i] || accesses[static_cast<std::size_t>(since)].writes;
    }
    return store;
  }

  // Queues all transfers on their streams. Most gaps change, so the curve is rebuilt at the end.
  void queue_transfers() {
    const std::vector<bool> store = stores();
    std::vector<std::int32_t> leaves(gaps_.size());
    insert_taken(by_ready_, [&](std::size_t g) { return gaps_[g].ready; });
    std::int64_t free = 0;
    for (const std::size_t i : by_ready_) {
      const Gap& g = gaps_[i];
      leaves[i] = g.from;
      if (!store[i]) continue;
      free = std::max(free, g.ready) + g.transfer_ns;
      leaves[i] = leaves_at(g, free);
    }
    insert_taken(by_needed_, [&](std::size_t g) { return -gaps_[g].needed; });
    free = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t i : by_needed_) {
      Gap& g = gaps_[i];
      std::int32_t returns = g.to;
      if (g.producer < 0 && g.fetches && g.to < n_) {
        free = std::min(free, g.needed) - g.transfer_ns;
        returns = returns_at(g, free);
      }
      const std::int32_t left = g.leaves, returned = g.returns;
      set(g, leaves[i], returns);
      if (g.leaves == left && g.returns == returned) continue;
      note_change(left, returned, g.bytes);
      note_change(g.leaves, g.returns, -g.bytes);
    }
    curve_.set(changes_);
  }

  // Live bytes at each instruction if every taken gap were absent for its whole length.
  std::vector<std::int64_t> least_of_taken() const {
    std::vector<std::int64_t> changes = changes_;
    const auto add = [&](std::int32_t first, std::int32_t end, std::int64_t bytes) {
      if (first >= end) return;
      changes[static_cast<std::size_t>(first)] += bytes;
      changes[static_cast<std::size_t>(end)] -= bytes;
    };
    for (const std::size_t i : taken_) {
      const Gap& g = gaps_[i];
      add(g.leaves + 1, g.returns, g.bytes);  // undoes the planned absence
      add(g.from + 1, g.to, -g.bytes);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    return changes;
  }

  // Lets buffers leave sooner or return later until nothing is over the target. The transfer that becomes
  // late by the least time goes first.
  void squeeze() {
    const std::vector<std::int64_t> least = least_of_taken();
    if (!has_choice(least)) return squeeze_all(least);
    // The instructions at which each gap's buffer could be absent and is not. They only become fewer.
    IntervalIndex present(n_);
    for (const std::size_t i : taken_) {
      const auto id = static_cast<std::int32_t>(i);
      present.add(gaps_[i].from + 1, gaps_[i].leaves, id);
      present.add(gaps_[i].returns, gaps_[i].to - 1, id);
    }
    std::vector<std::int32_t> excluded;
    std::vector<std::pair<std::int64_t, std::size_t>> by_lateness;
    while (curve_.highest() > p_.target.value) {
      check_time();
      const std::int32_t at = curve_.where();
      by_lateness.clear();
      if (curve_.at(at) > least[static_cast<std::size_t>(at)])
        present.each_at(at, [&](std::int32_t id) {
          const auto i = static_cast<std::size_t>(id);
          if (!gaps_[i].absent_at(at)) by_lateness.emplace_back(lateness(gaps_[i], at), i);
        });
      // A heap, because a few of many are usually enough.
      std::ranges::make_heap(by_lateness, std::greater{});
      for (; !by_lateness.empty() && curve_.at(at) > p_.target.value; by_lateness.pop_back()) {
        std::ranges::pop_heap(by_lateness, std::greater{});
        const std::size_t i = by_lateness.back().second;
        Gap& g = gaps_[i];
        if (at <= g.leaves)
          g.latest_leave = at - 1;
        else
          g.first_return = at + 1;
        evict(g, g.leaves, g.returns);
      }
      // Nothing helps here: hide the instruction while others are looked for.
      if (curve_.at(at) > p_.target.value) excluded.push_back(at), curve_.add(at, at, -kExcluded);
    }
    for (const std::int32_t at : excluded) curve_.add(at, at, kExcluded);
  }

  // Some instruction over the target can be fixed without evicting everything that covers it.
  bool has_choice(const std::vector<std::int64_t>& least) const {
    std::int64_t live = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n_); ++i)
      if (live += changes_[i]; live > p_.target.value && least[i] <= p_.target.value) return true;
    return false;
  }

  // Evicts everything at each instruction at which even that is over the target. The order does not matter.
  void squeeze_all(const std::vector<std::int64_t>& least) {
    const auto n = static_cast<std::size_t>(n_);
    // Such instructions: the first from an instruction on, and the last before it.
    std::vector<std::int32_t> next(n + 1, n_), last(n + 1, -1);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t back = n - 1 - i;
      const auto over = [&](std::size_t at) { return least[at] > p_.target.value; };
      next[back] = over(back) ? static_cast<std::int32_t>(back) : next[back + 1];
      last[i + 1] = over(i) ? static_cast<std::int32_t>(i) : last[i];
    }
    for (const std::size_t i : taken_) {
      Gap& g = gaps_[i];
      g.latest_leave = std::min(g.latest_leave, next[static_cast<std::size_t>(g.from + 1)] - 1);
      g.first_return = std::max(g.first_return, last[static_cast<std::size_t>(g.to)] + 1);
      set(g, g.leaves, g.returns);
    }
  }

  // ns by which a transfer would be late if the buffer were absent at the instruction.
  std::int64_t lateness(const Gap& g, std::int32_t at) const {
    const std::int64_t now = p_.timeline.begin[static_cast<std::size_t>(at)];
    const std::int64_t late = at <= g.leaves ? g.ready + g.transfer_ns - now : now + g.transfer_ns - g.needed;
    return std::max<std::int64_t>(0, late);
  }

  OffloadPlan result() {
    OffloadPlan out;
    for (const std::size_t i : taken_) {
      const Gap& g = gaps_[i];
      // A rematerialization may have shortened the gap to nothing.
      const bool is_away = g.to - g.from > 1 || g.from < 0 || g.to == n_;
      if (is_away) out.evictions.push_back({g.buffer, g.after, g.leaves, g.returns, g.producer});
    }
    std::ranges::sort(out.evictions, {}, [](const Eviction& a) { return std::pair(a.buffer, a.after); });
    out.offloaded_state = p_.offloaded_state;
    out.offloaded_state.insert(out.offloaded_state.end(), newly_offloaded_.begin(), newly_offloaded_.end());
    std::ranges::sort(out.offloaded_state);
    return out;
  }

  const OffloadProblem& p_;
  std::int32_t n_;
  std::vector<std::int64_t> changes_;  // of live bytes, by instruction; one more entry for the end
  LiveCurve curve_;                    // the sum of the changes
  IntervalIndex covering_;             // candidates, by the instructions at which they free memory
  IntervalIndex in_time_;              // likewise, only where that delays nothing
  std::int64_t transfer_ns_ = 0;       // of the buffer that is being added
  std::vector<Gap> gaps_;
  std::vector<bool> needs_offloaded_state_;  // by gap: it evicts state that is not offloaded yet
  std::vector<Candidate> candidates_;
  std::optional<TransferSlack> slack_;
  std::vector<std::size_t> taken_;
  // Taken gaps that queue_transfers() has seen: in order of their numbers, by `ready`, and by `needed` (the
  // latest first).
  std::vector<std::size_t> by_number_, by_ready_, by_needed_;
  std::vector<std::int32_t> newly_offloaded_;
  const bool rematerializes_;
  std::vector<std::vector<std::size_t>> gaps_of_;  // by buffer: gaps except those at the ends
  // The candidate that offloads each buffer of state. kNone: it is offloaded already, or may not be.
  std::vector<std::size_t> state_candidate_;
};

OffloadPlan planned(const OffloadProblem& problem, Priority priority, bool rematerializes = false) {
  OffloadPlan plan = GapPlanner(problem, priority, rematerializes).run();
  retime(problem, plan);
  return plan;
}

}  // namespace

OffloadPlan gap_policy(const OffloadProblem& problem) { return planned(problem, Priority::kWorth); }

OffloadPlan hidden_state_policy(const OffloadProblem& problem) { return planned(problem, Priority::kHidden); }

OffloadPlan rematerialize_policy(const OffloadProblem& problem) {
  return planned(problem, Priority::kHidden, true);
}

OffloadPlan slack_policy(const OffloadProblem& problem) { return planned(problem, Priority::kSlack, true); }

}  // namespace hyperrun
