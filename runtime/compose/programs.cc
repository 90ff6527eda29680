#include "runtime/compose/programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/compile/compile.h"
#include "runtime/compose/colocate.h"
#include "runtime/compose/exchange.h"
#include "runtime/ir/programs.h"

namespace hyperrun {
namespace {

std::vector<int> all_ranks(int ranks) {
  std::vector<int> list(static_cast<std::size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

Plan plan_of(const ProgramSpec& program, const Job& job) {
  if (program.does == kGenerates) return compile_generation(job).plan;
  if (program.does == kScores) return compile_scoring(job).plan;
  return compile(job).plan;
}

CompiledProgram compiled(const Job& whole, const ProgramSpec& program) {
  Job job = job_of(whole, program);
  try {
    Plan plan = plan_of(program, job);
    check_fits(plan, job.supernode);
    const Bytes alone = plan.peak();
    return {program.name, "", ranks_of(program), std::move(job), std::move(plan), alone};
  } catch (const Error& e) {
    throw Error(e).at(fmt::format("program {}{}{}", program.name, e.place().empty() ? "" : ", ", e.place()));
  }
}

// The sorted union of two lists of ranks.
std::vector<int> union_of(const std::vector<int>& a, const std::vector<int>& b) {
  std::set<int> ranks(a.begin(), a.end());
  ranks.insert(b.begin(), b.end());
  return {ranks.begin(), ranks.end()};
}

std::string names_on_rank(const std::vector<NamedPlan>& plans, int rank) {
  std::vector<std::string> names;
  for (const NamedPlan& p : plans)
    if (!p.name.empty() && std::ranges::find(p.ranks, rank) != p.ranks.end()) names.push_back(p.name);
  return joined(names);
}

}  // namespace

std::vector<CompiledProgram> compile_programs(const Job& job) {
  const ProgramSpec* const trains = find_program(job, kTrains);
  HR_CHECK(trains != nullptr, "a job of programs of which none trains");
  std::vector<CompiledProgram> programs{compiled(job, *trains)};
  for (const ProgramSpec& program : job.programs)
    if (program.does == kGenerates || program.does == kScores) programs.push_back(compiled(job, program));

  std::vector<PlanOnRanks> placed;
  for (CompiledProgram& p : programs) placed.push_back({&p.plan, p.ranks});
  const std::vector<TierBytes> ends = colocate(placed, job.supernode.devices);
  const std::size_t count = programs.size();
  for (std::size_t p = 1; p < count; ++p) {
    const CompiledProgram &from = programs[0], &to = programs[p];
    Plan plan = compile_exchange({from.plan, from.ranks}, {to.plan, to.ranks}, ends);
    programs.push_back(
        {"weights_of_" + to.name, to.name, union_of(from.ranks, to.ranks), from.job, std::move(plan), {}});
  }
  check_together(plans_of(programs, job.supernode.devices), job.supernode);
  return programs;
}

std::vector<NamedPlan> plans_of(const std::vector<CompiledProgram>& programs, int ranks) {
  std::vector<NamedPlan> plans;
  for (const CompiledProgram& p : programs)
    plans.push_back(p.weights.empty() ? NamedPlan{p.name, &p.plan, p.ranks}
                                      : NamedPlan{"", &p.plan, all_ranks(ranks)});
  return plans;
}

std::vector<Bytes> peaks_of_ranks(const std::vector<NamedPlan>& plans, int ranks, Tier tier) {
  std::vector<Bytes> peaks(static_cast<std::size_t>(ranks));
  for (const NamedPlan& p : plans)
    for (std::size_t d = 0; d < p.ranks.size(); ++d) {
      Bytes& peak = peaks[static_cast<std::size_t>(p.ranks[d])];
      peak = std::max(peak, p.plan->of_device(static_cast<std::int64_t>(d)).peak(tier));
    }
  return peaks;
}

void check_together(const std::vector<NamedPlan>& plans, const SupernodeSpec& spec) {
  const std::vector<Bytes> hbm = peaks_of_ranks(plans, spec.devices, Tier::kHbm);
  const auto most = std::ranges::max_element(hbm);
  const auto fullest = static_cast<int>(most - hbm.begin());
  if (*most > spec.hbm)
    throw Error(Code::kDoesNotFit,
                fmt::format("the programs on device {} ({}) take {} of HBM together, the budget is {}",
                            fullest, names_on_rank(plans, fullest), to_string(*most), to_string(spec.hbm)))
        .at("supernode.hbm")
        .legal(fmt::format("at least {} B", most->value))
        .fix("give the programs devices of their own, or split their weights over more");
  for (const auto& [tier, budget] : {std::pair{Tier::kPool, spec.pool}, {Tier::kFlash, spec.flash}}) {
    Bytes sum{};
    for (const Bytes part : peaks_of_ranks(plans, spec.devices, tier)) sum += part;
    if (sum > budget)
      throw Error(Code::kDoesNotFit, fmt::format("the programs take {} of the {} together, the budget is {}",
                                                 to_string(sum), name(tier), to_string(budget)))
          .at(fmt::format("supernode.{}", name(tier)))
          .legal(fmt::format("at least {} B", sum.value))
          .fix("raise it, or keep more in HBM");
  }
}

}  // namespace hyperrun
