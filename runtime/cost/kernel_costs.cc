#include "runtime/cost/kernel_costs.h"

#include <fmt/core.h>

#include "runtime/cost/duration.h"

namespace hyperrun {

KernelCosts::KernelCosts(const Program& program, const Machine& machine)
    : program_(program), machine_(machine) {
  if (machine.fused) groups_ = fusion_groups_of(program);
}

std::vector<const Instr*> KernelCosts::kernel(std::size_t instr) const {
  if (!groups_) return {&program_.instrs[instr]};
  std::vector<const Instr*> list;
  for (const std::int32_t i : (*groups_)[instr])
    list.push_back(&program_.instrs[static_cast<std::size_t>(i)]);
  return list;
}

std::size_t KernelCosts::together(std::size_t instr) const { return groups_ ? (*groups_)[instr].size() : 1; }

Nanos KernelCosts::computing(std::size_t instr) {
  if (together(instr) == 1) return duration(program_.instrs[instr], program_.mesh, {}, machine_);
  const auto [each, is_new] = each_.try_emplace((*groups_)[instr].front());
  if (is_new) {
    const std::vector<const Instr*> members = kernel(instr);
    const double all = compute_cost(members, program_.mesh, machine_).nanos();
    each->second = checked_duration(all / static_cast<double>(members.size()), *members[0], machine_);
  }
  return each->second;
}

instr::Collective KernelCosts::bucket(std::size_t instr) const {
  auto all = std::get<instr::Collective>(program_.instrs[instr].op);
  all.inner = 0;
  for (const Instr* member : kernel(instr)) all.inner += std::get<instr::Collective>(member->op).inner;
  return all;
}

Nanos KernelCosts::meeting(std::size_t instr, const Where& where) const {
  const Instr& self = program_.instrs[instr];
  if (together(instr) == 1) return duration(self, program_.mesh, where, machine_);
  const instr::Collective all = bucket(instr);
  const auto own = static_cast<double>(std::get<instr::Collective>(self.op).inner);
  const double lasts = collective_cost(all, where, machine_).nanos();
  return checked_duration(lasts * own / static_cast<double>(all.inner), self, machine_);
}

std::string KernelCosts::explain(std::size_t instr, const Where& where) const {
  const auto& own = std::get<instr::Collective>(program_.instrs[instr].op);
  if (together(instr) == 1) return hyperrun::explain(collective_cost(own, where, machine_));
  const instr::Collective all = bucket(instr);
  const double share = 100 * static_cast<double>(own.inner) / static_cast<double>(all.inner);
  return hyperrun::explain(collective_cost(all, where, machine_)) +
         fmt::format("    its part of these bytes, which {} exchange together: {:.4g} %\n", together(instr),
                     share);
}

std::string KernelCosts::explain(std::size_t instr) const {
  const Instr& self = program_.instrs[instr];
  if (beyond_hbm(self.op) != Tier::kHbm) return hyperrun::explain(transfer_cost(self, machine_));
  const std::vector<const Instr*> members = kernel(instr);
  const std::string text = hyperrun::explain(compute_cost(members, program_.mesh, machine_));
  if (members.size() == 1) return text;
  return text +
         fmt::format("    done by one kernel with {} more, which share its time\n", members.size() - 1);
}

}  // namespace hyperrun
