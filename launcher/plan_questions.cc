#include "launcher/plan_questions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/plan_flags.h"
#include "launcher/plan_job_file.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/choice_ablation.h"
#include "runtime/plan/pareto.h"
#include "runtime/report/describe_range.h"
#include "runtime/report/plan/refusal.h"
#include "runtime/report/plan/robust.h"
#include "runtime/report/table.h"
#include "runtime/run/proof.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/profile_figures.h"

namespace hyperrun {
namespace {

// The fastest simulated leader of our search that is also a strategy of the other space.
const SimulatedCandidate* fastest_of_ours(const Search& ours, const Space& space, const Job& job) {
  const auto first = std::ranges::find_if(ours.leaders, [&](const SimulatedCandidate& l) {
    return l.simulated > 0 && can_express(space, l.strategy) && has(space, job, l.strategy);
  });
  return first == ours.leaders.end() ? nullptr : &*first;
}

// The best strategy of each other space. If one search has missed a strategy of both spaces that the other
// has found, the strategy counts for both.
std::vector<BestOf> compare_spaces(const Job& job, const PlanArguments& arguments, const Space& asked,
                                   Search& ours, StatusLine& status) {
  std::vector<BestOf> list;
  for (Space space : spaces()) {
    if (space.name == arguments.space) continue;
    space.only = asked.only;
    BestOf& best = list.emplace_back(BestOf{.space = space.name, .is_empty = is_contradictory(job, space)});
    if (best.is_empty) continue;
    const Search other = run_search(job, arguments, space, status);
    best.is_empty = other.strategies == 0 || (!other.found() && none_meets_constraints(space, other));
    if (other.found()) best.leader = other.leaders.front();
    const SimulatedCandidate* shared = fastest_of_ours(ours, space, job);
    if (shared != nullptr && (!best.leader || shared->simulated < best.leader->simulated))
      best.leader = *shared;
    if (!best.leader) continue;
    best.is_empty = false;
    if (best.leader->simulated < ours.leaders.front().simulated && has(asked, job, best.leader->strategy))
      ours.adopt(*best.leader);
  }
  return list;
}

// Whether the job gives a strategy, and does not leave it to the planner.
bool has_strategy(const Job& job) { return !job.parallel.mesh.empty() || job.supernode.devices == 1; }

OwnStrategy own_strategy(const std::string& path, const Job& job, const Space& space) {
  OwnStrategy own;
  try {
    const LoadedJob loaded = load_job(path, JobUse::kToBeForeseen);
    own.leader = simulate_job(loaded.job);
    if (own.leader.why_not.empty()) print_warnings(warnings_of(loaded, sharded_training(loaded.job)));
  } catch (const JobError& e) {
    own.leader.why_not = e.cause();
  }
  const std::optional<Strategy> strategy = strategy_of(job);
  own.in_space = strategy && has(space, job, *strategy);
  return own;
}

// The user's own strategy takes the lead if it is in the space and faster than all simulated leaders.
void adopt(const OwnStrategy& own, const Job& job, Search& s) {
  if (!own.in_space || own.leader.simulated == 0 || own.leader.simulated >= s.leaders.front().simulated)
    return;
  SimulatedCandidate first = own.leader;
  first.strategy = *strategy_of(job);
  s.adopt(std::move(first));
}

// The search for the Pareto front also tries smaller HBM budgets. It may find a faster plan for the job's
// number of devices; that plan takes the lead.
void adopt(const Front& front, const Job& job, Search& s) {
  const SimulatedCandidate* best = nullptr;
  for (const FrontPoint& p : front.points)
    if (p.devices == job.supernode.devices && (best == nullptr || p.leader.simulated < best->simulated))
      best = &p.leader;
  if (best != nullptr && best->simulated < s.leaders.front().simulated) s.adopt(*best);
}

}  // namespace

Progress progress_on(StatusLine& status) {
  return [&status](const std::string& what, std::int64_t count) {
    status.tell(with_separators(count) + " " + what);
  };
}

Search run_search(const Job& job, const PlanArguments& arguments, const Space& space, StatusLine& status,
                  std::function<void(const Search&)> so_far) {
  return search(job, {.space = &space,
                      .leaders = arguments.leaders,
                      .progress = progress_on(status),
                      .so_far = std::move(so_far)});
}

PlanQuestions::PlanQuestions(const PlanArguments& arguments, Search& search, PlanAnswers& answers)
    : arguments_(arguments), search_(search), answers_(answers) {}

std::vector<PlanQuestions::Question> PlanQuestions::list_questions() {
  const PlanArguments& a = arguments_;
  // The ranking has at most --leaders rows for each space.
  const std::size_t most_rows = spaces().size() * static_cast<std::size_t>(a.leaders);
  std::vector<Question> list{{"the ranking", [this, most_rows] { return search_text(search_, most_rows); }}};
  const auto ask = [&](const char* name, bool is_asked, std::string (PlanQuestions::*answer)()) {
    if (is_asked) list.push_back({name, [this, answer] { return (this->*answer)(); }});
  };
  ask("the job's own strategy", has_strategy(answers_.job), &PlanQuestions::answer_own_strategy);
  ask("--why", a.why, &PlanQuestions::answer_why);
  ask("--pareto", a.pareto || !a.pareto_devices.empty(), &PlanQuestions::answer_pareto);
  ask("--sensitivity", a.sensitivity, &PlanQuestions::answer_sensitivity);
  ask("--compare", a.compare, &PlanQuestions::answer_compare);
  ask("how far the ranking can be trusted", a.ranges > 0, &PlanQuestions::answer_ranges);
  ask("--flags", !a.flags.empty(), &PlanQuestions::answer_flags);
  return list;
}

// An interruption reports the next question as unanswered once the answer before it is printed.
void PlanQuestions::answer_all() {
  const std::vector<Question> list = list_questions();
  set_unanswered(list.front().name);
  for (std::size_t i = 0; i < list.size(); ++i) {
    status_.tell(list[i].name);
    const std::string text = list[i].answer();
    status_.clear();
    publish(text + describe_new_leader(), i + 1 < list.size() ? list[i + 1].name : "");
    write_files();
  }
}

void PlanQuestions::set_unanswered(const std::string& question) {
  const std::lock_guard lock(mutex_);
  unanswered_ = question;
}

void PlanQuestions::prove() {
  answers_.proof = hyperrun::prove(answers_.job, answers_.space,
                                   {arguments_.job, arguments_.prove, arguments_.prove_plans});
  publish("\n" + to_text(*answers_.proof), "");
}

// Prints the answer for people at once. JSON and CSV are kept, and printed at the end or at an interruption.
void PlanQuestions::publish(const std::string& text, const std::string& next_question) {
  // The verdicts are relative to the leader, which may have changed since they were made.
  if (arguments_.json || !answers_.why.empty()) answers_.why = verdicts(search_, answers_.job.supernode.hbm);
  std::string file = arguments_.json ? plan_json(answers_) : arguments_.csv ? plan_csv(answers_) : "";
  const std::lock_guard lock(mutex_);
  machine_output_ = std::move(file);
  unanswered_ = next_question;
  if (!machine_output_.empty()) return;
  std::printf("%s", text.c_str());
  std::fflush(stdout);
}

// The picture shows each new answer. The job is written again only if the leader has changed.
void PlanQuestions::write_files() {
  if (!arguments_.svg.empty()) write_whole(arguments_.svg, "--svg", plan_svg(answers_));
  if (arguments_.out.empty() || written_leader_ == printed_leader_) return;
  write_whole(arguments_.out, "--out", planned_job(answers_.job, search_.leaders.front(), arguments_.out));
  written_leader_ = printed_leader_;
}

std::string PlanQuestions::describe_new_leader() {
  const SimulatedCandidate& best = search_.leaders.front();
  if (printed_leader_ == best.strategy) return "";
  const bool is_new = printed_leader_.has_value();
  printed_leader_ = best.strategy;
  answers_.fusion = best.fusion;
  if (!is_new) return fusion_text(answers_.fusion);
  return "\na faster plan than the first above was found, and is the first from here on: " +
         describe(best.strategy) + ", " + time_text(best.simulated) + " a step\n" +
         fusion_text(answers_.fusion);
}

// Compares the job's own strategy with the leader. If the job's is faster, it takes the lead afterwards.
std::string PlanQuestions::answer_own_strategy() {
  answers_.own = own_strategy(arguments_.job, answers_.job, answers_.space);
  const std::string text = "\n" + own_text(*answers_.own, search_.leaders.front());
  adopt(*answers_.own, answers_.job, search_);
  return text;
}

std::string PlanQuestions::answer_why() {
  simulate_alternatives(answers_.job, answers_.space, search_, progress_on(status_));
  answers_.why = verdicts(search_, answers_.job.supernode.hbm);
  return why_text(answers_.why);
}

std::string PlanQuestions::answer_pareto() {
  answers_.front = pareto_front(answers_.job, search_,
                                {.space = &answers_.space,
                                 .leaders = arguments_.leaders,
                                 .devices = arguments_.pareto_devices,
                                 .progress = progress_on(status_)});
  adopt(*answers_.front, answers_.job, search_);
  return front_text(*answers_.front);
}

// No more strategies are simulated for a changed machine than for this one. So a faster step is due to the
// machine, and not to a longer search.
std::string PlanQuestions::answer_sensitivity() {
  answers_.what_ifs = sensitivity(answers_.job, search_.leaders.front(),
                                  {.space = &answers_.space,
                                   .leaders = std::min(arguments_.leaders, 2),
                                   .progress = progress_on(status_)});
  return what_if_text(*answers_.what_ifs);
}

std::string PlanQuestions::answer_compare() {
  answers_.others = compare_spaces(answers_.job, arguments_, answers_.space, search_, status_);
  return comparison_text(answers_.others, search_.leaders.front());
}

std::string PlanQuestions::answer_ranges() {
  std::int64_t most = -1;
  std::mutex mutex;  // threads that finish together may report in any order
  const auto progress = [&](std::int64_t done, std::int64_t all) {
    const std::lock_guard lock(mutex);
    if (done <= most) return;
    most = done;
    status_.tell(fmt::format("{} of {} variations of the machine simulated", with_separators(done),
                             with_separators(all)));
  };
  answers_.robust = robustness(answers_.job, search_.leaders,
                               {.figures = figures_of(machine_of(answers_.job.supernode)),
                                .plans = static_cast<std::size_t>(arguments_.ranges),
                                .progress = progress});
  const Robustness& r = *answers_.robust;
  return (r.plans.empty() ? "" : describe_range(r.plans.front().range)) + robust_text(r);
}

std::string PlanQuestions::answer_flags() {
  return flags_text(answers_.job, search_, frameworks::framework_named(arguments_.flags, "--flags", true));
}

std::string PlanQuestions::machine_output() const {
  const std::lock_guard lock(mutex_);
  return machine_output_;
}

void PlanQuestions::print_interrupted() const {
  const std::lock_guard lock(mutex_);
  std::printf("%s", machine_output_.c_str());
  std::fprintf(stderr, "\ninterrupted at %s; what was told before it holds%s\n", unanswered_.c_str(),
               arguments_.out.empty() ? "" : (", and " + arguments_.out + " has the first so far").c_str());
}

}  // namespace hyperrun
