#include "launcher/plan_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "runtime/base/joined.h"
#include "runtime/frameworks/export.h"
#include "runtime/report/plan/text.h"

namespace hyperrun {
namespace {

// All simulated plans, the fastest first.
std::vector<const SimulatedCandidate*> fastest_first(const Search& search) {
  std::vector<const SimulatedCandidate*> list;
  for (const SimulatedCandidate& c : search.leaders) list.push_back(&c);
  for (const SimulatedAlternative& a : search.others) list.push_back(&a.leader);
  std::erase_if(list, [](const SimulatedCandidate* c) { return c->simulated <= 0; });
  std::ranges::stable_sort(list, {}, &SimulatedCandidate::simulated);
  return list;
}

std::string plan_line(const SimulatedCandidate& plan) {
  return describe(plan.strategy) + ", " + time_text(plan.simulated) + " a step";
}

}  // namespace

std::string flags_text(const Job& job, const Search& search, const frameworks::Framework& framework) {
  std::string text = fmt::format("\nin the terms of {}:\n", framework.title);
  const std::vector<const SimulatedCandidate*> plans = fastest_first(search);
  for (const SimulatedCandidate* plan : plans) {
    const frameworks::ExportedRun run = frameworks::export_run(job_of(job, plan->strategy), framework);
    if (!run.cannot.empty()) {
      if (plan == plans.front())
        text += fmt::format("  the first plan cannot be said: {} ({})\n", joined(run.cannot, "; "),
                            plan_line(*plan));
      continue;
    }
    text += fmt::format("  {}, on {} devices\n", plan_line(*plan), job.supernode.devices);
    if (!run.remark.empty()) text += fmt::format("  {}\n", run.remark);
    return text + "\n" + run.text;
  }
  return text + fmt::format(
                    "  none of the {} simulated plans can be said; --leaders finds more of them, and --only "
                    "keeps to some, such as --only memory=none\n",
                    plans.size());
}

}  // namespace hyperrun
