// Plans of small Programs, compared with the best possible plan from an exhaustive search.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/offload/local_search.h"
#include "runtime/offload/plan_evaluator.h"
#include "runtime/offload/policy.h"
#include "tests/offload/random_programs.h"

namespace hyperrun::testing {
namespace {

constexpr std::size_t kMostGaps = 4;
constexpr std::int64_t kLocalSearch = 40'000;  // as in runtime/compile/role_planner.cc

// Tries every combination of choices for the gaps of a small Program: resident, absent in any interval, or
// rematerialized at any instruction.
class Exhaustive {
 public:
  explicit Exhaustive(const Setting& setting) : s_(setting) {
    for (std::size_t b = 0; b < s_.uses.size(); ++b) {
      const std::vector<Access>& accesses = s_.uses[b].accesses;
      for (std::size_t k = 0; k + 1 < accesses.size(); ++k)
        if (accesses[k + 1].instr - accesses[k].instr > 1)
          gaps_.push_back(choices(static_cast<std::int32_t>(b), static_cast<std::int32_t>(k)));
    }
  }
  std::size_t gaps() const { return gaps_.size(); }

  // ns of the fastest step within the budget that computes the same; nullopt if there is none.
  std::optional<std::int64_t> best(Bytes budget) {
    budget_ = budget;
    best_.reset();
    search(0);
    return best_;
  }

 private:
  std::vector<Eviction> choices(std::int32_t b, std::int32_t after) const {
    const std::vector<Access>& accesses = s_.uses[static_cast<std::size_t>(b)].accesses;
    const std::int32_t from = accesses[static_cast<std::size_t>(after)].instr,
                       to = accesses[static_cast<std::size_t>(after) + 1].instr;
    std::vector<Eviction> list;
    for (std::int32_t leaves = from; leaves < to; ++leaves)
      for (std::int32_t returns = leaves + 1; returns <= to; ++returns)
        list.push_back({b, after, leaves, returns});
    // Any instruction that wrote the buffer is tried as producer. is_right() rejects the wrong ones.
    if (!accesses[static_cast<std::size_t>(after) + 1].reads) return list;
    for (std::int32_t producer = 0; producer <= from; ++producer) {
      const Instr& instr = s_.program.instrs[static_cast<std::size_t>(producer)];
      if (instr.in.empty() || instr.out[0].buffer.value != b) continue;
      for (std::int32_t returns = from + 1; returns <= to; ++returns)
        list.push_back({b, after, from, returns, producer});
    }
    return list;
  }

  void search(std::size_t g) {
    if (g == gaps_.size()) return look();
    search(g + 1);
    for (const Eviction& choice : gaps_[g]) {
      plan_.evictions.push_back(choice);
      search(g + 1);
      plan_.evictions.pop_back();
    }
  }

  void look() {
    const PlanEvaluator::Outcome o = evaluator_.evaluate(plan_, Bytes(0), budget_);
    if (o.peak > budget_ || (best_ && o.timeline.length >= *best_)) return;
    if (is_right(o)) best_ = o.timeline.length;
  }

  // A rematerialization whose inputs have no bytes does not verify.
  bool is_right(const PlanEvaluator::Outcome& evaluated) const {
    try {
      const Outcome o = outcome(s_.program, s_.uses, plan_, budget_);
      EXPECT_EQ(o.length(), evaluated.timeline.length);
      EXPECT_EQ(o.peak, evaluated.peak);
      return o.seen == seen_;
    } catch (const Error&) {
      return false;
    }
  }

  const Setting& s_;
  PlanEvaluator evaluator_{s_.program, s_.uses, durations(s_.program), transfer, Bytes(64)};
  std::vector<std::size_t> seen_ = outcome(s_.program, s_.uses, {}).seen;
  std::vector<std::vector<Eviction>> gaps_;  // by gap, without staying resident
  Bytes budget_;
  OffloadPlan plan_;
  std::optional<std::int64_t> best_;
};

// Like the compiler for small Programs: improves each policy's plan, and the empty plan, by local search.
std::optional<Outcome> improved_plan(const Setting& s, Bytes budget) {
  const PlanEvaluator evaluator(s.program, s.uses, durations(s.program), transfer, Bytes(64));
  std::vector<OffloadPlan> first{{}};
  for (const auto policy :
       {gap_policy, hidden_state_policy, belady_policy, rematerialize_policy, slack_policy, lru_policy})
    first.push_back(policy(s.problem(budget)));
  std::optional<Outcome> best;
  for (const OffloadPlan& plan : first) {
    const auto improve = plan == OffloadPlan{} ? improved_from_extremes : improved;
    const Outcome o =
        outcome(s.program, s.uses, improve(evaluator, plan, Bytes(0), budget, kLocalSearch), budget);
    if (o.peak <= budget && (!best || o.length() < best->length())) best = o;
  }
  return best;
}

// Budgets are 40 to 90 % of the peak without evictions.
TEST(BestPlan, IsNearlyFoundForSmallPrograms) {
  int compared = 0;
  double worst = 1, sum = 0;
  for (unsigned seed = 1000; compared < 342; ++seed) {
    const Setting s{RandomProgram(seed, 7 + static_cast<int>(seed % 4), 0).take()};
    Exhaustive all(s);
    if (all.gaps() == 0 || all.gaps() > kMostGaps) continue;
    const Outcome kept = outcome(s.program, s.uses, {});
    const Bytes budget(kept.peak.value * (4 + seed / 4 % 6) / 10);
    const std::optional<std::int64_t> best = all.best(budget);
    if (!best) continue;
    const std::optional<Outcome> planned = improved_plan(s, budget);
    ASSERT_TRUE(planned) << "seed " << seed;
    EXPECT_EQ(planned->seen, kept.seen) << "seed " << seed;
    const double ratio = static_cast<double>(planned->length()) / static_cast<double>(*best);
    EXPECT_GE(ratio, 1) << "seed " << seed;
    EXPECT_LE(ratio, 1.1) << "seed " << seed;
    worst = std::max(worst, ratio);
    sum += ratio;
    ++compared;
  }
  EXPECT_LE(sum / compared, 1.001);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("mean", std::to_string(sum / compared));
}

}  // namespace
}  // namespace hyperrun::testing
