// hyperrun plan JOB: finds the best strategy for a model on a machine.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include "launcher/commands.h"
#include "launcher/interruption.h"
#include "launcher/plan_job_file.h"
#include "launcher/plan_questions.h"
#include "launcher/plan_so_far.h"
#include "runtime/base/error.h"
#include "runtime/frameworks/framework.h"
#include "runtime/plan/pareto.h"
#include "runtime/plan/proof.h"
#include "runtime/plan/search.h"
#include "runtime/report/plan/refusal.h"
#include "runtime/report/plan/text.h"
#include "runtime/report/status_line.h"
#include "runtime/report/writable.h"
#include "runtime/run/proof.h"
#include "runtime/spec/job_reader.h"

namespace hyperrun {
namespace {

// An existing file is overwritten only if it is empty or a plan. Any other file may be a corpus, or a job
// that somebody has written by hand, named by mistake.
bool may_be_overwritten(const std::string& path) {
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
        .legal(fmt::format("a new file, or one that begins with \"{}\", as plans do", kPlanMark))
        .fix("name another file");
  };
  require_writable(arguments.out, "--out");
  if (is_same_file(arguments.out, arguments.job)) throw refused("is the job that is planned");
  if (!may_be_overwritten(arguments.out)) throw refused("is there already, and no plan");
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

// Refuses impossible numbers of devices before the search begins, instead of after it.
void require_possible(const Job& job, const PlanArguments& arguments) {
  require_devices(job, arguments.pareto_devices);
  if (arguments.prove > 0) proof_world(job, arguments.prove);
}

Search search_or_refuse(const Job& job, const PlanArguments& arguments, const Space& space,
                        PlanSoFar& so_far) {
  StatusLine status;
  Search s = run_search(job, arguments, space, status, [&](const Search& some) { so_far.keep(some); });
  if (!s.found()) throw nothing_feasible(job, space, s, status);
  return s;
}

// A search, and the questions about its result.
class PlanRun {
 public:
  PlanRun(const PlanArguments& arguments, const Job& job, const Space& space)
      : arguments_(arguments), job_(job), space_(space), so_far_(arguments, job, space) {}

  // Ctrl-C prints the answers known so far. The proof is outside of that guard: its run handles ctrl-C
  // itself.
  void run() {
    {
      const Interruption interruption([this] { print_interrupted(); });
      search_.emplace(search_or_refuse(job_, arguments_, space_, so_far_));
      answers_.emplace(PlanAnswers{.job = job_, .space = space_, .search = *search_});
      {
        const std::lock_guard lock(questions_mutex_);
        questions_.emplace(arguments_, *search_, *answers_);
      }
      questions_->answer_all();
    }
    if (arguments_.prove > 0) questions_->prove();
    std::printf("%s", questions_->machine_output().c_str());
    if (answers_->proof) require_proven(*answers_->proof);
  }

 private:
  // The lock is never released, as the process ends. So no answer is printed beside the last words.
  void print_interrupted() {
    questions_mutex_.lock();
    if (questions_)
      questions_->print_interrupted();
    else
      so_far_.print_interrupted();
  }

  const PlanArguments& arguments_;
  const Job& job_;
  const Space& space_;
  PlanSoFar so_far_;
  std::mutex questions_mutex_;
  std::optional<Search> search_;
  std::optional<PlanAnswers> answers_;
  std::optional<PlanQuestions> questions_;
};

}  // namespace

int plan_job(const PlanArguments& arguments) {
  Space space = space_named(arguments.space);
  for (const std::string& text : arguments.only) space.only.push_back(constraint_of(text));
  if (!arguments.flags.empty()) frameworks::framework_named(arguments.flags, "--flags", true);
  if (!arguments.out.empty()) require_place_for_job(arguments);
  if (!arguments.svg.empty()) require_place_for_picture(arguments);
  const LoadedJob loaded = load_job(arguments.job, JobUse::kToBePlanned);
  refuse_uneven_layers(loaded);
  const Job& job = loaded.job;
  try {
    require_possible(job, arguments);
    require_constraints_that_agree(job, space);
    PlanRun(arguments, job, space).run();
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
