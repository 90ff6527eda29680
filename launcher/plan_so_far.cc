#include "launcher/plan_so_far.h"

#include <cstdio>
#include <string>

#include "launcher/plan_job_file.h"

namespace hyperrun {
namespace {

constexpr const char* kSearch = "the search";

// A copy of the printed parts of a search, without its compiled plans.
Search printed_part(const Search& s) {
  Search part;
  part.strategies = s.strategies, part.do_not_divide = s.do_not_divide, part.do_not_fit = s.do_not_fit;
  part.bounded = s.bounded, part.forecast = s.forecast;
  part.leaders = s.leaders;
  for (SimulatedCandidate& leader : part.leaders) leader.plan.reset();
  part.bounds_hold = s.bounds_hold, part.is_whole = false;
  return part;
}

}  // namespace

PlanSoFar::PlanSoFar(const PlanArguments& arguments, const Job& job, const Space& space)
    : arguments_(arguments), job_(job), space_(space) {}

void PlanSoFar::keep(const Search& so_far) {
  if (!so_far.found()) return;
  const std::lock_guard lock(mutex_);
  search_.emplace(printed_part(so_far));
  const SimulatedCandidate& best = search_->leaders.front();
  if (arguments_.out.empty() || written_ == best.strategy) return;
  write_whole(arguments_.out, "--out", planned_job(job_, best, arguments_.out));
  written_ = best.strategy;
}

std::string PlanSoFar::describe() const {
  if (!search_) return arguments_.json ? interrupted_json(kSearch) : "";
  PlanAnswers answers{.job = job_, .space = space_, .search = *search_};
  answers.fusion = search_->leaders.front().fusion;
  answers.interrupted = kSearch;
  if (arguments_.json) return plan_json(answers);
  if (arguments_.csv) return plan_csv(answers);
  return search_text(*search_, search_->leaders.size());
}

void PlanSoFar::print_interrupted() const {
  const std::lock_guard lock(mutex_);
  std::fprintf(stderr, "\ninterrupted before the ranking was whole; %s%s\n",
               search_ ? "what was simulated so far is told, and nothing is certified"
                       : "nothing that fits was simulated yet",
               written_ ? (", and " + arguments_.out + " has the first so far").c_str() : "");
  std::printf("%s", describe().c_str());
}

}  // namespace hyperrun
