// hyperrun plan JOB: the best strategy for a model on a machine.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/commands.h"
#include "launcher/interruption.h"
#include "launcher/plan_job_file.h"
#include "launcher/plan_proof.h"
#include "launcher/plan_questions.h"
#include "launcher/plan_refusal.h"
#include "launcher/plan_words.h"
#include "launcher/status_line.h"
#include "launcher/writable.h"
#include "runtime/base/error.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/proof.h"
#include "runtime/plan/search.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// A corpus whose name was typed where the job's belongs would be lost, or a job that somebody has written:
// what is there already is written over only if it is a plan, or has nothing in it.
bool may_be_written_over(const std::string& path) {
  std::error_code unseen;
  if (!std::filesystem::exists(path, unseen)) return true;
  std::ifstream file(path);
  std::string line;
  return !std::getline(file, line) || line.starts_with(kPlanMark);
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code none;
  return std::filesystem::equivalent(a, b, none);
}

void require_place_for_job(const PlanArguments& arguments) {
  const auto refused = [&](const std::string& why) {
    return Error(Code::kUsage, why)
        .at("--out " + arguments.out)
        .legal("a new file, or one that begins with \"" + std::string(kPlanMark) + "\", as plans do")
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

// What would be refused for its numbers of devices when the search is done, is so before it begins.
void require_possible(const Job& job, const PlanArguments& arguments) {
  require_devices(job, arguments.pareto_devices);
  if (arguments.prove > 0) proof_world(job, arguments.prove);
}

// Whatever is known when the work is interrupted is told. Ranks that are started to prove it have ctrl-C of
// their own.
void answer(const PlanArguments& arguments, Search& s, PlanAnswers& answers) {
  PlanQuestions questions(arguments, s, answers);
  {
    const Interruption interruption([&questions] {
      std::printf("%s", questions.for_programs().c_str());
      questions.tell_of_interruption();
    });
    questions.ask_all();
  }
  if (arguments.prove > 0) questions.prove();
  std::printf("%s", questions.for_programs().c_str());
}

Search found(const Job& job, const PlanArguments& arguments, const Space& space) {
  StatusLine status;
  Search s = searched(job, arguments, space, status);
  if (!s.found()) throw nothing_feasible(job, space, s, status);
  return s;
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
    Search s = found(job, arguments, space);
    PlanAnswers answers{.job = job, .space = space, .search = s};
    answer(arguments, s, answers);
    if (answers.proof) require_proven(*answers.proof);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
