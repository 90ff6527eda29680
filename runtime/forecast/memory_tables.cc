#include "runtime/forecast/memory_tables.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "runtime/forecast/describe_role.h"
#include "runtime/ir/stats.h"
#include "runtime/report/table.h"
#include "runtime/run/device_use.h"

namespace hyperrun {
namespace {

std::string share(Bytes part, Bytes whole) {
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part.value) / static_cast<double>(whole.value));
}

}  // namespace

std::string hbm_table(const Job& job, const Role& role) {
  const Bytes budget = job.supernode.hbm;
  Table table({left("category"), right("bytes"), right(""), right("of the budget")});
  const auto row = [&](const std::string& what, Bytes bytes) {
    table.row({what, with_separators(bytes.value), to_string(bytes), share(bytes, budget)});
  };
  Bytes gaps = role.peak();
  for (const CategoryUse& use : planned_use(job, role).tiers[0].categories) {
    row(use.category, use.planned);
    gaps -= use.planned;
  }
  if (gaps.value > 0) row("gaps between", gaps);
  table.rule();
  row("peak", role.peak());
  row("budget", budget);
  return table.str("  ");
}

std::string role_peaks_table(const Job& job, const Plan& plan) {
  Table table({left("stage"), right("peak"), right("of the budget")});
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    table.row({describe_role(job, r), to_string(plan.roles[r].peak()),
               share(plan.roles[r].peak(), job.supernode.hbm)});
  return table.str("  ");
}

std::string transfers_table(const Job& job, const Role& role) {
  Table table({left("tier"), right("of a device"), right("of the job's"), left("transfer"), right("times"),
               right("bytes a step")});
  for (const auto& [tier, budget] :
       {std::pair{Tier::kPool, job.supernode.pool}, {Tier::kFlash, job.supernode.flash}}) {
    if (role.peak(tier).value == 0) continue;
    std::map<std::string, std::pair<std::int64_t, Bytes>> moves;
    for (const Instr& instr : role.program("train").instrs)
      if (beyond_hbm(instr.op) == tier) {
        auto& [times, bytes] = moves[transfer_kind(instr.op).collective];
        ++times;
        bytes += instr.in[0].bytes;
      }
    std::string first(name(tier)), peak = to_string(role.peak(tier)), whole = to_string(budget);
    for (const auto& [transfer, sum] : moves) {
      table.row({first, peak, whole, transfer, with_separators(sum.first), to_string(sum.second)});
      first = peak = whole = "";
    }
  }
  return table.empty() ? "" : table.str("  ");
}

}  // namespace hyperrun
