#include "runtime/offload/local_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/offload/rematerialize.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kShortGap = 8;  // instructions; for gaps up to this length every interval is tried

class LocalSearch {
 public:
  LocalSearch(const PlanEvaluator& evaluator, const OffloadPlan& plan, Bytes state, Bytes budget,
              std::int64_t most)
      : evaluator_(evaluator),
        offloaded_state_(plan.offloaded_state),
        state_(state),
        budget_(budget),
        evaluations_left_(most / std::max<std::int64_t>(1, std::ssize(evaluator.program().instrs))) {
    for (const Eviction& a : plan.evictions) chosen_[{a.buffer, a.after}] = a;
    for (std::int32_t b = 0; b < std::ssize(evaluator.uses()) && std::ssize(gaps_) <= evaluations_left_; ++b)
      add_gaps(b);
  }

  OffloadPlan run() {
    std::int64_t once = 0;
    for (const Gap& g : gaps_) once += std::ssize(g.choices);
    if (once > evaluations_left_) return plan();
    best_ = result();
    while (change_one() || change_two()) {
    }
    return plan();
  }

  // Changing two gaps takes longest, so only a new best plan is improved that way.
  OffloadPlan run_from_extremes() {
    OffloadPlan best = run();
    Result least = best_;
    const std::int64_t all = count_extremes();
    for (std::int64_t number = 0; number < all && evaluations_left_ > 0; ++number) {
      choose_all(number);
      best_ = result();
      while (change_one()) {
      }
      if (best_ >= least) continue;
      while (change_one() || change_two()) {
      }
      least = best_;
      best = plan();
    }
    return best;
  }

 private:
  using GapKey = std::pair<std::int32_t, std::int32_t>;  // buffer and the access before the gap
  using Choice = std::optional<Eviction>;                // nullopt: resident
  // Bytes above the budget, then ns, then the peak: a lower peak leaves room for other buffers.
  using Result = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  struct Gap {
    GapKey key;
    std::vector<Choice> choices;
  };

  void add_gaps(std::int32_t b) {
    const BufferUses& uses = evaluator_.uses()[static_cast<std::size_t>(b)];
    const Buffer& buffer = evaluator_.program().buffers[static_cast<std::size_t>(b)];
    const bool offloaded = std::ranges::binary_search(offloaded_state_, b);
    if ((buffer.state ? !offloaded : !uses.movable)) return;
    for (std::int32_t k = 0; k + 1 < std::ssize(uses.accesses); ++k) {
      const Access &before = uses.accesses[static_cast<std::size_t>(k)],
                   &next = uses.accesses[static_cast<std::size_t>(k) + 1];
      if (before.arrives || next.instr - before.instr < 2) continue;
      gaps_.push_back({{b, k}, choices(b, k, before.instr, next.instr)});
      if (!buffer.state && next.reads)
        add_rematerializations(gaps_.back().choices, {b, k, before.instr, next.instr});
    }
  }

  // All intervals of a short gap. Of a long gap, those that begin and end at its ends or its middle.
  static std::vector<Choice> choices(std::int32_t b, std::int32_t after, std::int32_t from, std::int32_t to) {
    const std::int32_t middle = from + (to - from) / 2;
    std::vector<std::int32_t> leave{from, from + 1, middle}, come_back{middle + 1, to - 1, to};
    if (to - from <= kShortGap) {
      leave.resize(static_cast<std::size_t>(to - from));
      std::iota(leave.begin(), leave.end(), from);
      come_back.resize(leave.size());
      std::iota(come_back.begin(), come_back.end(), from + 1);
    }
    std::vector<Choice> list{std::nullopt};
    for (const std::int32_t leaves : leave)
      for (const std::int32_t returns : come_back)
        if (leaves < returns) list.push_back(Eviction{b, after, leaves, returns, -1});
    return list;
  }

  // Adds rematerialization at each instruction of a short gap, or at the last possible one of a long gap.
  void add_rematerializations(std::vector<Choice>& choices, Eviction remat) const {
    remat.producer = producer_of(evaluator_.program(), evaluator_.uses(), remat.buffer, remat.after);
    if (remat.producer < 0) return;
    const std::int32_t last = std::min(
        remat.returns, inputs_unchanged_until(evaluator_.program(), evaluator_.uses(), remat.producer));
    const bool is_short = remat.returns - remat.leaves <= kShortGap;
    for (std::int32_t at = is_short ? remat.leaves + 1 : std::max(last, remat.leaves + 1); at <= last; ++at) {
      choices.emplace_back(remat);
      choices.back()->returns = at;
    }
  }

  // An input that returns only to be written has no bytes to compute from.
  bool inputs_have_bytes(const Eviction& remat) const {
    const auto has_bytes = [&](const Operand& o) {
      const std::vector<Access>& accesses = evaluator_.uses()[o.buffer.index()].accesses;
      const auto next = std::ranges::lower_bound(accesses, remat.returns, {}, &Access::instr);
      if (next == accesses.end() || next->reads) return true;
      const auto before = static_cast<std::int32_t>(next - accesses.begin()) - 1;
      const auto away = chosen_.find({static_cast<std::int32_t>(o.buffer.value), before});
      return away == chosen_.end() || away->second.returns > remat.returns;
    };
    return std::ranges::all_of(evaluator_.program().instrs[static_cast<std::size_t>(remat.producer)].in,
                               has_bytes);
  }

  // Resident, absent as long as possible, or rematerialized right before the use.
  static std::vector<Choice> extremes(const Gap& gap) {
    Choice away, rematerialized;
    for (const Choice& choice : gap.choices)
      if (choice && choice->producer >= 0)
        rematerialized = choice;
      else if (choice && (!away || choice->leaves == away->leaves))
        away = choice;
    std::vector<Choice> list{std::nullopt, away};
    if (rematerialized) list.push_back(rematerialized);
    return list;
  }

  // The number of combinations of extremes; 0 if there are too many to try.
  std::int64_t count_extremes() const {
    std::int64_t all = 1;
    for (const Gap& g : gaps_) {
      all *= std::ssize(extremes(g));
      if (all > evaluations_left_) return 0;
    }
    return all;
  }

  void choose_all(std::int64_t number) {
    for (const Gap& g : gaps_) {
      const std::vector<Choice> list = extremes(g);
      choose(g.key, list[static_cast<std::size_t>(number % std::ssize(list))]);
      number /= std::ssize(list);
    }
  }

  OffloadPlan plan() const {
    OffloadPlan a{{}, offloaded_state_};
    for (const auto& [key, eviction] : chosen_) a.evictions.push_back(eviction);
    return a;
  }

  Result result() {
    --evaluations_left_;
    for (const auto& [key, a] : chosen_)
      if (a.producer >= 0 && !inputs_have_bytes(a)) return {kMost, 0, 0};
    const PlanEvaluator::Outcome o = evaluator_.evaluate(plan(), state_, budget_);
    return {std::max<std::int64_t>(0, (o.peak - budget_).value), o.timeline.length, o.peak.value};
  }

  // Returns the former choice.
  Choice choose(const GapKey& key, const Choice& choice) {
    const auto at = chosen_.find(key);
    Choice before = at == chosen_.end() ? Choice{} : Choice{at->second};
    if (choice)
      chosen_[key] = *choice;
    else if (at != chosen_.end())
      chosen_.erase(at);
    return before;
  }

  bool is_better() {
    const Result r = result();
    if (r >= best_) return false;
    best_ = r;
    return true;
  }

  bool change_one() {
    for (const Gap& g : gaps_)
      for (const Choice& choice : g.choices) {
        if (evaluations_left_ <= 0) return false;
        const Choice before = choose(g.key, choice);
        if (before == choice) continue;
        if (is_better()) return true;
        choose(g.key, before);
      }
    return false;
  }

  bool change_two() {
    for (std::size_t i = 0; i < gaps_.size(); ++i)
      for (const Choice& choice : gaps_[i].choices) {
        const Choice before = choose(gaps_[i].key, choice);
        if (before == choice) continue;
        for (std::size_t j = i + 1; j < gaps_.size(); ++j)
          for (const Choice& other : gaps_[j].choices) {
            if (evaluations_left_ <= 0) return choose(gaps_[i].key, before), false;
            const Choice other_before = choose(gaps_[j].key, other);
            if (other_before == other) continue;
            if (is_better()) return true;
            choose(gaps_[j].key, other_before);
          }
        choose(gaps_[i].key, before);
      }
    return false;
  }

  const PlanEvaluator& evaluator_;
  std::vector<std::int32_t> offloaded_state_;
  Bytes state_, budget_;
  std::int64_t evaluations_left_;
  std::map<GapKey, Eviction> chosen_;
  std::vector<Gap> gaps_;
  Result best_{};
};

}  // namespace

OffloadPlan improved(const PlanEvaluator& evaluator, OffloadPlan plan, Bytes state, Bytes budget,
                     std::int64_t most) {
  return LocalSearch(evaluator, plan, state, budget, most).run();
}

OffloadPlan improved_from_extremes(const PlanEvaluator& evaluator, OffloadPlan plan, Bytes state,
                                   Bytes budget, std::int64_t most) {
  return LocalSearch(evaluator, plan, state, budget, most).run_from_extremes();
}

}  // namespace hyperrun
