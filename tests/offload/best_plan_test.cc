// Plans of small Programs, beside the best that there is: all ways in which their gaps may be spent are
// tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/offload/policy.h"
#include "runtime/offload/polish.h"
#include "runtime/offload/rehearsal.h"
#include "tests/offload/made_up.h"

namespace hyperrun::testing {
namespace {

constexpr std::size_t kMostGaps = 4;
constexpr std::int64_t kPolishing = 40'000;  // as in runtime/compile/role_planner.cc

// A small Program, whose gaps may be spent in so many ways: the buffer stays; or it is away from one
// instruction to another; or it is made again before one, from what may be kept for that.
class Exhaustive {
 public:
  explicit Exhaustive(const Setting& setting) : s_(setting) {
    for (std::size_t b = 0; b < s_.uses.size(); ++b) {
      const std::vector<Access>& accesses = s_.uses[b].accesses;
      for (std::size_t k = 0; k + 1 < accesses.size(); ++k)
        if (accesses[k + 1].instr - accesses[k].instr > 1)
          gaps_.push_back(ways(static_cast<std::int32_t>(b), static_cast<std::int32_t>(k)));
    }
  }
  std::size_t gaps() const { return gaps_.size(); }

  // ns of the shortest step within the budget that computes the same; nothing where none is.
  std::optional<std::int64_t> best(Bytes budget) {
    budget_ = budget;
    best_.reset();
    search(0);
    return best_;
  }

 private:
  std::vector<Absence> ways(std::int32_t b, std::int32_t after) const {
    const std::vector<Access>& accesses = s_.uses[static_cast<std::size_t>(b)].accesses;
    const std::int32_t from = accesses[static_cast<std::size_t>(after)].instr,
                       to = accesses[static_cast<std::size_t>(after) + 1].instr;
    std::vector<Absence> list;
    for (std::int32_t leaves = from; leaves < to; ++leaves)
      for (std::int32_t returns = leaves + 1; returns <= to; ++returns)
        list.push_back({b, after, leaves, returns});
    // By whatever has written it; whether it comes to the same is seen where it would be best.
    if (!accesses[static_cast<std::size_t>(after) + 1].reads) return list;
    for (std::int32_t maker = 0; maker <= from; ++maker) {
      const Instr& instr = s_.program.instrs[static_cast<std::size_t>(maker)];
      if (instr.in.empty() || instr.out[0].buffer.value != b) continue;
      for (std::int32_t returns = from + 1; returns <= to; ++returns)
        list.push_back({b, after, from, returns, maker});
    }
    return list;
  }

  void search(std::size_t g) {
    if (g == gaps_.size()) return look();
    search(g + 1);
    for (const Absence& way : gaps_[g]) {
      absences_.list.push_back(way);
      search(g + 1);
      absences_.list.pop_back();
    }
  }

  void look() {
    const Rehearsal::Outcome o = rehearsal_.of(absences_, Bytes(0), budget_);
    if (o.peak > budget_ || (best_ && o.timeline.length >= *best_)) return;
    if (is_right(o)) best_ = o.timeline.length;
  }

  // What is made again from what nobody has written does not verify.
  bool is_right(const Rehearsal::Outcome& rehearsed) const {
    try {
      const Outcome o = outcome(s_.program, s_.uses, absences_, budget_);
      EXPECT_EQ(o.length(), rehearsed.timeline.length);
      EXPECT_EQ(o.peak, rehearsed.peak);
      return o.seen == seen_;
    } catch (const Error&) {
      return false;
    }
  }

  const Setting& s_;
  Rehearsal rehearsal_{s_.program, s_.uses, durations(s_.program), transfer, Bytes(64)};
  std::vector<std::size_t> seen_ = outcome(s_.program, s_.uses, {}).seen;
  std::vector<std::vector<Absence>> gaps_;  // but for staying
  Bytes budget_;
  Absences absences_;
  std::optional<std::int64_t> best_;
};

// As the compiler does with small Programs: each plan, and nothing that moves, get a last touch.
std::optional<Outcome> polished_plan(const Setting& s, Bytes budget) {
  const Rehearsal rehearsal(s.program, s.uses, durations(s.program), transfer, Bytes(64));
  std::vector<Absences> first{{}};
  for (const auto policy :
       {plan_by_gaps, plan_by_hiding, plan_by_next_use, plan_by_remaking, plan_by_streams, react})
    first.push_back(policy(s.problem(budget)));
  std::optional<Outcome> best;
  for (const Absences& plan : first) {
    const auto polishing = plan == Absences{} ? polished_from_all : polished;
    const Outcome o =
        outcome(s.program, s.uses, polishing(rehearsal, plan, Bytes(0), budget, kPolishing), budget);
    if (o.peak <= budget && (!best || o.length() < best->length())) best = o;
  }
  return best;
}

// In 40 to 90 % of the memory.
TEST(BestPlan, IsNearOfSmallPrograms) {
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
    const std::optional<Outcome> planned = polished_plan(s, budget);
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
