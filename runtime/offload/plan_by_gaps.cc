#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/offload/gaps.h"
#include "runtime/offload/in_sight.h"
#include "runtime/offload/live_curve.h"
#include "runtime/offload/policy.h"
#include "runtime/offload/remake.h"
#include "runtime/offload/stretches.h"

namespace hyperrun {
namespace {

constexpr int kRounds = 64;
constexpr std::int64_t kOutOfSight = std::int64_t{1} << 60;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// What is taken first.
enum class First : std::uint8_t {
  kWorth,    // what is worth most
  kHiding,   // homes whose transfers hide at the ends of the Program, as all homes' queue there
  kInSight,  // what finds the streams of transfers free, beside all that was taken before
};

class Planner {
 public:
  Planner(const OffloadProblem& problem, First first, bool remakes)
      : p_(problem),
        n_(static_cast<std::int32_t>(problem.program.instrs.size())),
        curve_(n_),
        covering_(n_),
        in_time_(n_),
        remakes_(remakes),
        gaps_of_(problem.uses.size()) {
    const bool hiding_first = first == First::kHiding;
    changes_.resize(static_cast<std::size_t>(n_) + 1);
    for (std::size_t b = 0; b < p_.uses.size(); ++b) add_buffer(static_cast<std::int32_t>(b));
    find_crowded();
    sort_candidates(hiding_first);
    if (first == First::kInSight) in_sight_.emplace(p_.timeline, gaps_, candidates_);
    curve_.set(changes_);
    for (std::size_t g = 0; g < gaps_.size(); ++g)
      if (gaps_[g].taken) spend_first(gaps_[g]);
    home_of_.resize(p_.uses.size(), kNone);
    for (std::size_t c = candidates_.size(); c-- > 0;) {
      const Candidate& candidate = candidates_[c];
      if (candidate.home) home_of_[static_cast<std::size_t>(buffer_of(candidate))] = c;
      for (std::size_t g = candidate.first; g < candidate.first + candidate.gaps; ++g) {
        const auto id = static_cast<std::int32_t>(c);
        covering_.add(gaps_[g].from + 1, gaps_[g].to - 1, id);
        const bool moves = candidate.maker < 0;
        if (moves && hiding_first && candidate.crowded) continue;
        const std::int32_t begin = (moves ? gaps_[g].stored : gaps_[g].from) + 1,
                           end = (moves ? gaps_[g].fetched : gaps_[g].to) - 1;
        in_time_.add(begin, end, id);
        if (in_sight_) in_sight_->add(begin, end, id);
      }
    }
  }

  Absences run() {
    for (int round = 0; round < kRounds; ++round) {
      const bool more = select();
      queue();
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
    const bool home = std::ranges::binary_search(p_.homes, b);
    if (!uses.movable && !home) return;
    lasts_ = p_.transfer(buffer.bytes - buffer.empty).value;
    for (std::int32_t k = 0; k + 1 < std::ssize(uses.accesses); ++k)
      if (!buffer.state || home || p_.new_homes) add_gap(b, k, buffer.state && !home);
    if (buffer.state && (home || p_.new_homes)) add_ends(b, home);
  }

  Gap gap(std::int32_t b, std::int32_t after) const {
    const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(b)].accesses;
    const Bytes bytes = p_.program.buffers[static_cast<std::size_t>(b)].bytes;
    Gap g{b, after, -1, n_, aligned(bytes), lasts_};
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
    g.stored = leaves_at(g, g.ready + g.lasts);
    g.fetched = returns_at(g, g.needed - g.lasts);
    return g;
  }

  void add_gap(std::int32_t b, std::int32_t after, bool of_a_new_home) {
    const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(b)].accesses;
    const auto k = static_cast<std::size_t>(after);
    if (accesses[k].arrives || accesses[k + 1].instr - accesses[k].instr < 2) return;
    const Gap g = gap(b, after);
    candidates_.push_back({gaps_.size(), 1, worth(g.needed - g.ready, 2 * g.lasts)});
    if (const std::int32_t m = remakes_ && !of_a_new_home ? maker_before(b, after, g.to) : -1; m >= 0) {
      candidates_.push_back({gaps_.size(), 1, worth(g.needed - g.ready, lasts(m))});
      candidates_.back().maker = m;
    }
    gaps_of_[static_cast<std::size_t>(b)].push_back(gaps_.size());
    needs_home_.push_back(of_a_new_home);
    gaps_.push_back(g);
  }

  void add_ends(std::int32_t b, bool home) {
    const Gap begin = gap(b, -1),
              end =
                  gap(b, static_cast<std::int32_t>(p_.uses[static_cast<std::size_t>(b)].accesses.size()) - 1);
    const std::int64_t late = std::max<std::int64_t>(0, begin.fetches ? begin.lasts - begin.needed : 0) +
                              std::max<std::int64_t>(0, end.ready + end.lasts - p_.timeline.length);
    candidates_.push_back(
        {gaps_.size(), 2, worth(begin.needed + p_.timeline.length - end.ready, 2 * begin.lasts), true, late});
    for (const Gap& g : {begin, end}) gaps_.push_back(g), needs_home_.push_back(false);
    if (home) mark(candidates_.back()), candidates_.pop_back();
  }

  // By rank; without those of gaps in which nothing is over the target as it is: less will be, never more.
  void sort_candidates(bool hiding_first) {
    std::vector<std::int32_t> next_over(changes_.size() + 1, n_);  // from an instruction on
    std::int64_t live = 0;
    for (std::size_t i = 0; i < changes_.size(); ++i)
      if (live += changes_[i]; live > p_.target.value) next_over[i] = static_cast<std::int32_t>(i);
    for (std::size_t i = changes_.size(); i-- > 0;) next_over[i] = std::min(next_over[i], next_over[i + 1]);
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      const Gap& g = gaps_[candidates_[c].first];
      if (candidates_[c].home || next_over[static_cast<std::size_t>(g.from + 1)] < g.to) order.push_back(c);
    }
    sort_by(order, [&](std::size_t c) { return candidates_[c].rank(hiding_first); });
    std::vector<Candidate> sorted;
    sorted.reserve(order.size());
    for (const std::size_t c : order) sorted.push_back(candidates_[c]);
    candidates_ = std::move(sorted);
  }

  // At either end of the Program transfers of homes queue for what time there is.
  void find_crowded() {
    std::vector<Candidate*> homes;
    for (Candidate& c : candidates_)
      if (c.home) homes.push_back(&c);
    const auto begin = [&](const Candidate* c) -> const Gap& { return gaps_[c->first]; };
    const auto end = [&](const Candidate* c) -> const Gap& { return gaps_[c->first + 1]; };
    std::ranges::stable_sort(homes, {}, [&](const Candidate* c) { return begin(c).needed; });
    std::int64_t sum = 0;
    for (Candidate* c : homes) {
      if (begin(c).fetches) sum += begin(c).lasts;
      c->crowded = sum > begin(c).needed;
    }
    std::ranges::stable_sort(homes, std::greater{}, [&](const Candidate* c) { return end(c).ready; });
    sum = 0;
    for (Candidate* c : homes) {
      sum += end(c).lasts;
      c->crowded = c->crowded || end(c).ready + sum > p_.timeline.length;
    }
    std::vector<bool> crowded(p_.uses.size());
    for (const Candidate* c : homes) crowded[static_cast<std::size_t>(buffer_of(*c))] = c->crowded;
    for (Candidate& c : candidates_)
      c.crowded = c.crowded || (needs_home_[c.first] && crowded[static_cast<std::size_t>(buffer_of(c))]);
  }

  static double worth(std::int64_t away, std::int64_t costs) {
    return static_cast<double>(away) / static_cast<double>(std::max<std::int64_t>(costs, 1));
  }

  // --- making again -----------------------------------------------------------------------------------

  std::int64_t lasts(std::int32_t instr) const {
    return p_.timeline.end[static_cast<std::size_t>(instr)] -
           p_.timeline.begin[static_cast<std::size_t>(instr)];
  }

  // The instruction that can make a buffer again before instruction `to`: what it reads is as it was, and is
  // read then or later. What is only written next, as by a message, would be back without its bytes. -1:
  // none.
  std::int32_t maker_before(std::int32_t b, std::int32_t after, std::int32_t to) const {
    const std::int32_t m = maker_of(p_.program, p_.uses, b, after);
    if (m < 0 || unchanged_until(p_.program, p_.uses, m) <= to) return -1;
    const auto is_read = [&](const Operand& o) {
      const std::vector<Access>& list = p_.uses[o.buffer.index()].accesses;
      const auto next = std::ranges::lower_bound(list, to, {}, &Access::instr);
      return next != list.end() && next->reads;
    };
    return std::ranges::all_of(p_.program.instrs[static_cast<std::size_t>(m)].in, is_read) ? m : -1;
  }

  // The buffer has to be there before the instruction, though nothing of the Program uses it then.
  void need(std::size_t buffer, std::int32_t at) {
    for (const std::size_t g : gaps_of_[buffer]) {
      Gap& gap = gaps_[g];
      if (!gap.covers(at)) continue;
      gap.to = at;
      gap.needed = p_.timeline.begin[static_cast<std::size_t>(at)];
      by_needed_.clear();
      gap.fetched = returns_at(gap, gap.needed - gap.lasts);
      if (!gap.taken) return;
      spend(gap, gap.leaves, gap.returns);
      if (gap.maker >= 0) need_inputs(gap);
      return;
    }
  }

  void need_inputs(const Gap& gap) {
    for (const Operand& o : p_.program.instrs[static_cast<std::size_t>(gap.maker)].in)
      need(o.buffer.index(), gap.to);
  }

  // --- which gaps -----------------------------------------------------------------------------------

  // Until nothing is over the target that a gap would help; false: no gap was taken.
  bool select() {
    const std::size_t before = taken_.size();
    std::vector<std::int32_t> given_up;
    while (curve_.highest() > p_.target.value) {
      const std::int32_t at = curve_.where();
      const auto is_free = [&](std::int32_t c) {
        const Candidate& candidate = candidates_[static_cast<std::size_t>(c)];
        return !candidate.taken && !gaps_[candidate.first].taken;
      };
      std::int32_t found = Stretches::kNone;
      if (in_sight_) found = in_sight_->first_at(at, [&](const Candidate& c) { return waits_for_home(c); });
      if (found == Stretches::kNone) found = in_time_.first_at(at, is_free);
      if (found == Stretches::kNone) found = covering_.first_at(at, is_free);
      if (found == Stretches::kNone) {
        given_up.push_back(at), curve_.add(at, at, -kOutOfSight);
        continue;
      }
      auto best = static_cast<std::size_t>(found);
      // With its home beyond HBM that may do already.
      std::size_t& home = home_of_[static_cast<std::size_t>(buffer_of(candidates_[best]))];
      if (waits_for_home(candidates_[best])) best = home;
      if (candidates_[best].home) home = kNone;
      take(candidates_[best]);
    }
    for (const std::int32_t at : given_up) curve_.add(at, at, kOutOfSight);
    return taken_.size() > before;
  }

  // State comes and goes within a Program only if its home is beyond HBM.
  bool waits_for_home(const Candidate& c) const {
    return needs_home_[c.first] && home_of_[static_cast<std::size_t>(buffer_of(c))] != kNone;
  }

  std::int32_t buffer_of(const Candidate& c) const { return gaps_[c.first].buffer; }

  // Its Store is done at `time`.
  std::int32_t leaves_at(const Gap& g, std::int64_t time) const {
    if (g.from < 0) return -1;
    return p_.timeline.first_from(time, g.from + 1) - 1;
  }

  // Its Prefetch begins at `time`.
  std::int32_t returns_at(const Gap& g, std::int64_t time) const {
    if (g.to == n_) return n_;
    return std::max(p_.timeline.last_by(time, g.to), 0);
  }

  void take(Candidate& c) {
    mark(c);
    if (c.home && !std::ranges::binary_search(p_.homes, buffer_of(c))) homes_.push_back(buffer_of(c));
    for (std::size_t g = c.first; g < c.first + c.gaps; ++g) spend_first(gaps_[g]);
    if (in_sight_ && c.maker < 0) in_sight_->use(c);
  }

  void mark(Candidate& c) {
    c.taken = true;
    for (std::size_t g = c.first; g < c.first + c.gaps; ++g) {
      taken_.push_back(g);
      gaps_[g].taken = true;
      gaps_[g].maker = c.maker;
      gaps_[g].leaves = gaps_[g].from;
      gaps_[g].returns = gaps_[g].from + 1;
    }
  }

  void spend_first(Gap& g) {
    if (g.maker < 0) return spend(g, g.stored, g.fetched);
    spend(g, g.from, g.to);
    need_inputs(g);
  }

  // Sets when the buffer is away; what contradicts itself is cut to what it may be.
  static void set(Gap& g, std::int32_t leaves, std::int32_t returns) {
    g.returns = std::clamp(returns, std::max(g.from + 1, g.first_return), g.to);
    g.leaves = std::clamp(leaves, g.from, std::min({g.returns - 1, g.latest_leave, g.to - 1}));
  }

  // More is live between the two.
  void note(std::int32_t leaves, std::int32_t returns, std::int64_t bytes) {
    if (leaves + 1 >= returns) return;
    changes_[static_cast<std::size_t>(leaves) + 1] += bytes;
    changes_[static_cast<std::size_t>(returns)] -= bytes;
  }

  void spend(Gap& g, std::int32_t leaves, std::int32_t returns) {
    const std::int32_t left = g.leaves, returned = g.returns;
    set(g, leaves, returns);
    note(left, returned, g.bytes);
    note(g.leaves, g.returns, -g.bytes);
    const bool meet = g.leaves + 1 < returned && left + 1 < g.returns && left + 1 < returned;
    if (meet) {  // only what changes at either end
      curve_.add(g.leaves + 1, left, -g.bytes);
      curve_.add(left + 1, g.leaves, g.bytes);
      curve_.add(g.returns, returned - 1, g.bytes);
      curve_.add(returned, g.returns - 1, -g.bytes);
    } else {
      curve_.add(left + 1, returned - 1, g.bytes);
      curve_.add(g.leaves + 1, g.returns - 1, -g.bytes);
    }
  }

  // --- when -----------------------------------------------------------------------------------------

  // What has been taken since goes where it belongs; equal ones are by when they were taken.
  template <class Key>
  void insert_taken(std::vector<std::size_t>& order, Key key_of) const {
    std::vector<std::size_t> more(taken_.begin() + std::ssize(order), taken_.end());
    if (more.empty()) return;
    sort_by(more, key_of);
    order.insert(order.end(), more.begin(), more.end());
    std::ranges::inplace_merge(order, order.end() - std::ssize(more), {}, key_of);
  }

  // Whether the gap's stay before it has changed the bytes since they were last stored.
  std::vector<bool> stores() {
    // Of a buffer, ascending, but for that before its first use, which stores nothing.
    insert_taken(by_number_, [](std::size_t g) { return g; });
    std::vector<bool> store(gaps_.size(), false);
    std::int32_t buffer = -1, since = 0;
    for (const std::size_t i : by_number_) {
      const Gap& g = gaps_[i];
      if (g.buffer != buffer) buffer = g.buffer, since = 0;
      if (g.maker >= 0) continue;
      const std::vector<Access>& accesses = p_.uses[static_cast<std::size_t>(buffer)].accesses;
      for (; since <= g.after; ++since)
        store[i] = store[i] || accesses[static_cast<std::size_t>(since)].writes;
    }
    return store;
  }

  // Of most gaps something changes, and so the curve is made anew.
  void queue() {
    const std::vector<bool> store = stores();
    std::vector<std::int32_t> leaves(gaps_.size());
    insert_taken(by_ready_, [&](std::size_t g) { return gaps_[g].ready; });
    std::int64_t free = 0;
    for (const std::size_t i : by_ready_) {
      const Gap& g = gaps_[i];
      leaves[i] = g.from;
      if (!store[i]) continue;
      free = std::max(free, g.ready) + g.lasts;
      leaves[i] = leaves_at(g, free);
    }
    insert_taken(by_needed_, [&](std::size_t g) { return -gaps_[g].needed; });
    free = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t i : by_needed_) {
      Gap& g = gaps_[i];
      std::int32_t returns = g.to;
      if (g.maker < 0 && g.fetches && g.to < n_) {
        free = std::min(free, g.needed) - g.lasts;
        returns = returns_at(g, free);
      }
      const std::int32_t left = g.leaves, returned = g.returns;
      set(g, leaves[i], returns);
      if (g.leaves == left && g.returns == returned) continue;
      note(left, returned, g.bytes);
      note(g.leaves, g.returns, -g.bytes);
    }
    curve_.set(changes_);
  }

  // What lives at each instruction with all away whose gap covers it.
  std::vector<std::int64_t> least_of_taken() const {
    std::vector<std::int64_t> changes = changes_;
    const auto add = [&](std::int32_t first, std::int32_t end, std::int64_t bytes) {
      if (first >= end) return;
      changes[static_cast<std::size_t>(first)] += bytes;
      changes[static_cast<std::size_t>(end)] -= bytes;
    };
    for (const std::size_t i : taken_) {
      const Gap& g = gaps_[i];
      add(g.leaves + 1, g.returns, g.bytes);  // as if none were away
      add(g.from + 1, g.to, -g.bytes);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    return changes;
  }

  // What is over the target leaves sooner or comes later: of all that would help, what has to hurry least.
  void squeeze() {
    const std::vector<std::int64_t> least = least_of_taken();
    if (!has_choice(least)) return squeeze_all(least);
    Stretches present(n_);  // of gaps: where their buffers might be away and are not; less later, never more
    for (const std::size_t i : taken_) {
      const auto id = static_cast<std::int32_t>(i);
      present.add(gaps_[i].from + 1, gaps_[i].leaves, id);
      present.add(gaps_[i].returns, gaps_[i].to - 1, id);
    }
    std::vector<std::int32_t> given_up;
    std::vector<std::pair<std::int64_t, std::size_t>> hurries;
    while (curve_.highest() > p_.target.value) {
      const std::int32_t at = curve_.where();
      hurries.clear();
      if (curve_.at(at) > least[static_cast<std::size_t>(at)])
        present.each_at(at, [&](std::int32_t id) {
          const auto i = static_cast<std::size_t>(id);
          if (!gaps_[i].absent_at(at)) hurries.emplace_back(hurry(gaps_[i], at), i);
        });
      // A heap, as a few of many are enough.
      std::ranges::make_heap(hurries, std::greater{});
      for (; !hurries.empty() && curve_.at(at) > p_.target.value; hurries.pop_back()) {
        std::ranges::pop_heap(hurries, std::greater{});
        const std::size_t i = hurries.back().second;
        Gap& g = gaps_[i];
        if (at <= g.leaves)
          g.latest_leave = at - 1;
        else
          g.first_return = at + 1;
        spend(g, g.leaves, g.returns);
      }
      // What nothing helps is out of sight while others are looked for.
      if (curve_.at(at) > p_.target.value) given_up.push_back(at), curve_.add(at, at, -kOutOfSight);
    }
    for (const std::int32_t at : given_up) curve_.add(at, at, kOutOfSight);
  }

  // Somewhere over the target less would do than that all are away.
  bool has_choice(const std::vector<std::int64_t>& least) const {
    std::int64_t live = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n_); ++i)
      if (live += changes_[i]; live > p_.target.value && least[i] <= p_.target.value) return true;
    return false;
  }

  // Wherever even the least is over the target all are away that may be: in any order.
  void squeeze_all(const std::vector<std::int64_t>& least) {
    const auto n = static_cast<std::size_t>(n_);
    std::vector<std::int32_t> next(n + 1, n_),
        last(n + 1, -1);  // such instructions, from one on and before it
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

  // ns by which a transfer would be late, if the gap's buffer were away at the instruction.
  std::int64_t hurry(const Gap& g, std::int32_t at) const {
    const std::int64_t now = p_.timeline.begin[static_cast<std::size_t>(at)];
    const std::int64_t late = at <= g.leaves ? g.ready + g.lasts - now : now + g.lasts - g.needed;
    return std::max<std::int64_t>(0, late);
  }

  Absences result() {
    Absences out;
    for (const std::size_t i : taken_) {
      const Gap& g = gaps_[i];
      const bool is_away = g.to - g.from > 1 || g.from < 0 || g.to == n_;  // or it is needed too soon
      if (is_away) out.list.push_back({g.buffer, g.after, g.leaves, g.returns, g.maker});
    }
    std::ranges::sort(out.list, {}, [](const Absence& a) { return std::pair(a.buffer, a.after); });
    out.homes = p_.homes;
    out.homes.insert(out.homes.end(), homes_.begin(), homes_.end());
    std::ranges::sort(out.homes);
    return out;
  }

  const OffloadProblem& p_;
  std::int32_t n_;
  std::vector<std::int64_t> changes_;  // at each instruction of what is live; one more, of nothing
  LiveCurve curve_;                    // of these
  Stretches covering_, in_time_;  // of candidates: where they help, and where without holding anything up
  std::int64_t lasts_ = 0;        // a transfer of the buffer that is added
  std::vector<Gap> gaps_;
  std::vector<bool> needs_home_;  // by gap: of state that has to have its home beyond HBM
  std::vector<Candidate> candidates_;
  std::optional<InSight> in_sight_;
  std::vector<std::size_t> taken_;
  // Of these, as far as queue() knows them, by number, by when they may leave and, the last one first, by
  // when they must be back.
  std::vector<std::size_t> by_number_, by_ready_, by_needed_;
  std::vector<std::int32_t> homes_;
  const bool remakes_;
  // By buffer:
  std::vector<std::vector<std::size_t>> gaps_of_;  // but for those at the ends
  std::vector<std::size_t> home_of_;  // the candidate that makes it one; kNone: it is one, or may not be
};

Absences planned(const OffloadProblem& problem, First first, bool remakes = false) {
  Absences absences = Planner(problem, first, remakes).run();
  retime(problem, absences);
  return absences;
}

}  // namespace

Absences plan_by_gaps(const OffloadProblem& problem) { return planned(problem, First::kWorth); }

Absences plan_by_hiding(const OffloadProblem& problem) { return planned(problem, First::kHiding); }

Absences plan_by_remaking(const OffloadProblem& problem) { return planned(problem, First::kHiding, true); }

Absences plan_by_streams(const OffloadProblem& problem) { return planned(problem, First::kInSight, true); }

}  // namespace hyperrun
