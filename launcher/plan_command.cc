// hyperrun plan JOB: the best strategy for a model on a machine.
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "launcher/job_warnings.h"
#include "launcher/plan_proof.h"
#include "launcher/plan_refusal.h"
#include "launcher/plan_words.h"
#include "launcher/status_line.h"
#include "launcher/writable.h"
#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/shrink.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/proof.h"
#include "runtime/plan/search.h"
#include "runtime/plan/why.h"
#include "runtime/report/table.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

// What is done, for those who wait.
auto telling(StatusLine& status) {
  return [&status](const std::string& what, std::int64_t count) {
    status.tell(with_separators(count) + " " + what);
  };
}

Search searched(const Job& job, const PlanArguments& arguments, const Space& space) {
  StatusLine status;
  return search(job, {.space = &space, .leaders = arguments.leaders, .progress = telling(status)});
}

bool can_be_executed_to_scale(const Job& job, const std::string& path, Bytes peak) {
  try {
    compile_to_scale(parse_job(to_textproto(job), path, JobUse::kToBeForeseen).job, peak);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    return false;
  }
}

// What a job is divided by that is executed to scale was chosen for its own strategy: of another one stages
// have other layers, and axes split more. Whatever does not go is divided by less, one size after the other.
Job with_a_scale_that_goes(Job job, const std::string& path, Bytes peak) {
  ShrinkSpec& by = job.run.shrink;
  if (by == ShrinkSpec{}) return job;
  for (const PipelineSpec::Stage& stage : job.parallel.pipeline.stages)
    by.depth = std::gcd(by.depth, stage.layers);
  const std::array<std::int32_t*, 4> sizes{&by.sequence, &by.width, &by.batch, &by.vocab};
  for (std::size_t next = 0; !can_be_executed_to_scale(job, path, peak); ++next) {
    const auto larger = [](const std::int32_t* size) { return *size > 1; };
    if (std::ranges::none_of(sizes, larger)) break;
    while (*sizes[next % sizes.size()] == 1) ++next;
    std::int32_t& size = *sizes[next % sizes.size()];
    size /= static_cast<std::int32_t>(divisors(size)[1]);
  }
  return job;
}

// Stands above what is written.
constexpr std::string_view kMark = "# planned by hyperrun: ";

std::string text_of(const Job& job, const Leader& best) {
  return std::string(kMark) + words(best.strategy) + "; " + time_words(best.simulated) +
         " a step (simulated)\n" + to_textproto(job);
}

// A corpus whose name was typed where the job's belongs would be lost, or a job that somebody has written:
// what is there already is written over only if it is a plan, or has nothing in it.
bool may_be_written_over(const std::string& path) {
  std::error_code unseen;
  if (!std::filesystem::exists(path, unseen)) return true;
  std::ifstream file(path);
  std::string line;
  return !std::getline(file, line) || line.starts_with(kMark);
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

void require_place_for_job(const PlanArguments& arguments) {
  const auto refused = [&](const std::string& why) {
    return Error(Code::kUsage, why)
        .at("--out " + arguments.out)
        .legal("a new file, or one that begins with \"" + std::string(kMark) + "\", as plans do")
        .fix("name another file");
  };
  require_writable(arguments.out, "--out");
  if (is_same_file(arguments.out, arguments.job)) throw refused("is the job that is planned");
  if (!may_be_written_over(arguments.out)) throw refused("is there already, and no plan");
  const auto absolute = [&](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (!arguments.svg.empty() && absolute(arguments.out) == absolute(arguments.svg))
    throw refused("is where --svg draws");
}

void require_place_for_picture(const PlanArguments& arguments) {
  require_writable_svg(arguments.svg, "--svg");
  if (is_same_file(arguments.svg, arguments.job))
    throw Error(Code::kUsage, "is the job that is planned")
        .at("--svg " + arguments.svg)
        .legal("another file")
        .fix("name another file");
}

// Where the name is a link to a file, that one.
void write_whole(const std::string& path, const std::string& option, const std::string& text) try {
  std::error_code unseen;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, unseen);
  write_file(unseen ? std::filesystem::path(path) : target, text);
} catch (const Error& e) {
  throw at_option(option, Error(e.code(), e.cause()).at(path));
}

// What would be refused for its numbers of devices when the search is done, is so before it begins.
void require_possible(const Job& job, const PlanArguments& arguments) {
  require_devices(job, arguments.pareto_devices);
  if (arguments.prove > 0) proof_world(job, arguments.prove);
}

// Of what our search has simulated, the fastest that the space has as well.
const Leader* fastest_of_ours(const Search& ours, const Space& space, const Job& job) {
  const auto first = std::ranges::find_if(ours.leaders, [&](const Leader& l) {
    return l.simulated > 0 && can_express(space, l.strategy) && has(space, job, l.strategy);
  });
  return first == ours.leaders.end() ? nullptr : &*first;
}

// Of each space but ours. What is of both spaces, and faster than all that the one's search has simulated, is
// first there then.
std::vector<BestOf> compared(const Job& job, const PlanArguments& arguments, const Space& asked,
                             Search& ours) {
  std::vector<BestOf> list;
  for (Space space : spaces()) {
    if (space.name == arguments.space) continue;
    space.only = asked.only;
    BestOf& best = list.emplace_back(BestOf{.space = space.name, .is_empty = is_contradictory(job, space)});
    if (best.is_empty) continue;
    const Search other = searched(job, arguments, space);
    best.is_empty = other.strategies == 0 || (!other.found() && none_is_so(space, other));
    if (other.found()) best.leader = other.leaders.front();
    const Leader* shared = fastest_of_ours(ours, space, job);
    if (shared != nullptr && (!best.leader || shared->simulated < best.leader->simulated))
      best.leader = *shared;
    if (!best.leader) continue;
    best.is_empty = false;
    if (best.leader->simulated < ours.leaders.front().simulated && has(asked, job, best.leader->strategy))
      ours.adopt(*best.leader);
  }
  return list;
}

// Nothing where the job leaves it to the planner.
std::optional<OwnStrategy> own_strategy(const std::string& path, const Job& job, const Space& space) {
  if (job.parallel.mesh.empty() && job.supernode.devices > 1) return std::nullopt;
  OwnStrategy own;
  try {
    const LoadedJob loaded = load_job(path, JobUse::kToBeForeseen);
    own.leader = try_job(loaded.job);
    if (own.leader.why_not.empty()) tell(warnings_of(loaded, sharded_training(loaded.job)));
  } catch (const JobError& e) {
    own.leader.why_not = e.cause();
  }
  const std::optional<Strategy> strategy = strategy_of(job);
  own.in_space = strategy && has(space, job, *strategy);
  return own;
}

// What the user has found already, where it is of the space and faster than all that was simulated.
void adopt(const OwnStrategy& own, const Job& job, Search& s) {
  if (!own.in_space || own.leader.simulated == 0 || own.leader.simulated >= s.leaders.front().simulated)
    return;
  Leader first = own.leader;
  first.strategy = *strategy_of(job);
  s.adopt(std::move(first));
}

// What the front has on as many devices as the job: with smaller budgets of HBM it looks at others.
void adopt(const Front& front, const Job& job, Search& s) {
  const Leader* best = nullptr;
  for (const FrontPoint& p : front.points)
    if (p.devices == job.supernode.devices && (best == nullptr || p.leader.simulated < best->simulated))
      best = &p.leader;
  if (best != nullptr && best->simulated < s.leaders.front().simulated) s.adopt(*best);
}

void print(const PlanAnswers& answers, const PlanArguments& arguments) {
  const Leader& best = answers.search.leaders.front();
  // As many as were asked for, of each space.
  const std::size_t most_rows = spaces().size() * static_cast<std::size_t>(arguments.leaders);
  std::string text = search_words(answers.search, most_rows);
  if (answers.own) text += own_words(*answers.own, best);
  text += fusion_words(answers.fusion);
  if (arguments.why) text += why_words(answers.why);
  if (answers.front) text += front_words(*answers.front);
  if (answers.what_ifs) text += what_if_words(*answers.what_ifs);
  if (answers.proof) text += "\n" + to_text(*answers.proof);
  if (!answers.others.empty()) text += comparison_words(answers.others, best);
  std::printf("%s", text.c_str());
}

}  // namespace

int plan_job(const PlanArguments& arguments) {
  Space space = space_named(arguments.space);
  for (const std::string& text : arguments.only) space.only.push_back(constraint_of(text));
  if (!arguments.out.empty()) require_place_for_job(arguments);
  if (!arguments.svg.empty()) require_place_for_picture(arguments);
  const LoadedJob loaded = load_job(arguments.job, JobUse::kToBePlanned);
  const Job& job = loaded.job;
  try {
    require_possible(job, arguments);
    require_constraints_that_agree(job, space);
    Search s = searched(job, arguments, space);
    StatusLine status;
    if (!s.found()) throw nothing_feasible(job, space, s, status);
    std::vector<BestOf> others;
    if (arguments.compare) others = compared(job, arguments, space, s);
    const std::optional<OwnStrategy> own = own_strategy(arguments.job, job, space);
    if (own) adopt(*own, job, s);
    if (arguments.why) simulate_alternatives(job, space, s, telling(status));
    std::optional<Front> front;
    if (arguments.pareto || !arguments.pareto_devices.empty())
      adopt(front.emplace(pareto_front(job, s,
                                       {.space = &space,
                                        .leaders = arguments.leaders,
                                        .devices = arguments.pareto_devices,
                                        .progress = telling(status)})),
            job, s);
    const Leader& best = s.leaders.front();
    if (!arguments.out.empty())
      write_whole(arguments.out, "--out",
                  text_of(with_a_scale_that_goes(job_of(job, best.strategy), arguments.out, best.hbm), best));
    PlanAnswers answers{job, space, s, std::move(others), own, {}, best.fusion, std::move(front), {}, {}};
    if (arguments.why || arguments.json) answers.why = verdicts(s, job.supernode.hbm);
    // No more are simulated for another machine than were for this one: what is gained is the machine's.
    if (arguments.sensitivity)
      answers.what_ifs = sensitivity(
          job, best,
          {.space = &space, .leaders = std::min(arguments.leaders, 2), .progress = telling(status)});
    status.clear();
    if (arguments.prove > 0) answers.proof = prove(job, space, arguments);
    if (!arguments.svg.empty()) write_whole(arguments.svg, "--svg", plan_svg(answers));
    if (arguments.json)
      std::printf("%s", plan_json(answers).c_str());
    else if (arguments.csv)
      std::printf("%s", plan_csv(answers).c_str());
    else
      print(answers, arguments);
    if (answers.proof) require_proven(*answers.proof);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
