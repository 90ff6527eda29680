#include "runtime/report/plan/robust.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/advise/paste.h"
#include "runtime/base/format.h"
#include "runtime/report/plan/words.h"
#include "runtime/report/table.h"

namespace hyperrun {
namespace {

constexpr std::size_t kMostTold = 5;

std::string plan_name(std::size_t plan) { return "plan " + std::to_string(plan + 1); }
std::string step_words(double step) { return std::isfinite(step) ? describe_time(step) : "does not fit"; }

Table plans_table(const Robustness& r) {
  Table table({left("plan"), left("strategy"), right("step"), right("guesses better"), right("guesses worse"),
               right("behind the best elsewhere")});
  for (std::size_t p = 0; p < r.plans.size(); ++p) {
    const Contender& c = r.plans[p];
    const double loss = r.fits_everywhere(p) ? r.worst_loss(p) : kDoesNotFit;
    table.row({std::to_string(p + 1), words(c.strategy), to_string(c.range.step), to_string(c.range.fastest),
               to_string(c.range.slowest),
               std::isfinite(loss) ? "up to " + percent_words(loss) : "may not fit"});
  }
  return table;
}

// A circumstance in which another plan is faster than the first by more than simulations tell apart.
struct Lost {
  std::size_t circumstance = 0, to = 0;
  double loss = 0;
};
std::vector<Lost> lost_by_the_first(const Robustness& r) {
  std::vector<Lost> list;
  for (std::size_t c = 0; c < r.circumstances.size(); ++c) {
    const std::size_t best = r.fastest_in(c);
    const double there = r.plans[best].steps[c], loss = r.plans.front().steps[c] / there - 1;
    if (std::isfinite(there) && loss > kAsFast) list.push_back({c, best, loss});
  }
  std::ranges::stable_sort(list, std::greater{}, &Lost::loss);
  return list;
}

// Names the machines on which no plan has room, with the budget to plan for.
std::string without_room(const Robustness& r) {
  const std::vector<std::size_t> where = r.without_room();
  if (where.empty()) return "";
  std::string text = "none of these plans fits where " + r.circumstances[where.front()];
  for (std::size_t i = 1; i < where.size(); ++i) text += ", or " + r.circumstances[where[i]];
  const auto hbm = static_cast<std::int64_t>(r.least_hbm);
  return text + "; to plan for the least HBM that there may be:\n  " +
         paste("supernode", "hbm: \"" + std::to_string(hbm) + " B\"") + "\n";
}

std::string it_depends(const Robustness& r, const std::vector<Lost>& lost) {
  std::string text = "which plan is best depends on what the machine is:\n";
  for (std::size_t i = 0; i < std::min(kMostTold, lost.size()); ++i) {
    const auto& [c, to, loss] = lost[i];
    text += "  " + plan_name(to) + " is faster where " + r.circumstances[c] + ": " +
            step_words(r.plans[to].steps[c]) + " beside " + step_words(r.plans.front().steps[c]) + "\n";
  }
  if (lost.size() > kMostTold)
    text += format("  and on %zu more machines, which --json has\n", lost.size() - kMostTold);
  const std::size_t steady = r.steadiest();
  if (const double loss = r.worst_loss(steady); steady > 0 && std::isfinite(loss))
    text += plan_name(steady) + " is never more than " + percent_words(loss) + " behind the best of these\n";
  return text;
}

}  // namespace

std::string robust_words(const Robustness& r) {
  if (r.plans.size() < 2) return "";
  const bool has_guesses = !r.plans.front().range.guesses.empty();
  std::string text = "\nis the first still the first on another machine? Simulated on " +
                     with_separators(static_cast<std::int64_t>(r.circumstances.size()) - 1) + " others: " +
                     (has_guesses ? "each guess at both ends of its range, all guesses together, " : "") +
                     "one device slow\n";
  text += plans_table(r).str("  ");
  const std::vector<Lost> lost = lost_by_the_first(r);
  text += lost.empty()
              ? format("plan 1 is the fastest, or within %g %% of it, on all of them%s\n", 100 * kAsFast,
                       r.without_room().empty() ? "" : " on which one of these plans fits")
              : it_depends(r, lost);
  text += without_room(r);
  if (const auto& s = r.simpler)
    text += plan_name(s->plan) + " is simpler (" + s->reason + ") and takes " + percent_words(s->behind) +
            " more than the first\n";
  return text;
}

}  // namespace hyperrun
