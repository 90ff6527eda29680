#include "runtime/cost/kernel_costs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/cost/duration.h"
#include "runtime/ir/gradient_sums.h"

namespace hyperrun {

KernelCosts::KernelCosts(const Program& program, const Machine& machine)
    : program_(program), machine_(machine) {
  if (machine.fuses()) groups_ = fusion_groups_of(program, machine.joins());
  if (machine.software.issue.gradient_traffic.value > 0) add_gradient_traffic();
}

// Passes of the framework over sums of gradients come once a step, where the norm of all of them is begun.
void KernelCosts::add_gradient_traffic() {
  const auto norm = std::ranges::find_if(
      program_.instrs, [](const Instr& i) { return std::holds_alternative<instr::SumSquares>(i.op); });
  if (norm == program_.instrs.end()) return;
  double bytes = 0;
  for (const std::int32_t b : gradient_sums(program_))
    bytes += static_cast<double>(program_.buffers[static_cast<std::size_t>(b)].bytes.value);
  bytes *= machine_.software.issue.gradient_traffic.value / static_cast<double>(size_of(DType::kF32));
  passing_ = static_cast<std::size_t>(norm - program_.instrs.begin());
  passing_nanos_ = passes_over(bytes);
}

std::vector<const Instr*> KernelCosts::kernel(std::size_t instr) const {
  if (!groups_) return {&program_.instrs[instr]};
  std::vector<const Instr*> list;
  for (const std::int32_t i : (*groups_)[instr])
    list.push_back(&program_.instrs[static_cast<std::size_t>(i)]);
  return list;
}

std::size_t KernelCosts::together(std::size_t instr) const { return groups_ ? (*groups_)[instr].size() : 1; }

double KernelCosts::passes_over(double bytes) const {
  constexpr double kNanosPerSecond = 1e9;
  return bytes > 0 ? bytes / (machine_.hbm_bandwidth.value * machine_.memory.at(bytes)) * kNanosPerSecond : 0;
}

// Copies of slices of queries, keys and values, which are the first three inputs of attention.
double KernelCosts::copies_beside(const Instr& instr) const {
  if (!std::holds_alternative<instr::Attention>(instr.op) &&
      !std::holds_alternative<instr::AttentionGrad>(instr.op))
    return 0;
  double bytes = 0;
  for (std::size_t i = 0; i < 3; ++i) bytes += static_cast<double>(instr.in[i].bytes.value);
  return passes_over(machine_.software.issue.attention_traffic.value * bytes);
}

Nanos KernelCosts::computing(std::size_t instr) {
  const Nanos own = computing_itself(instr);
  const Instr& self = program_.instrs[instr];
  const double more = (instr == passing_ ? passing_nanos_ : 0) + copies_beside(self);
  return more > 0 ? checked_duration(static_cast<double>(own.value) + more, self, machine_) : own;
}

Nanos KernelCosts::computing_itself(std::size_t instr) {
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
  const Nanos own = meeting_itself(instr, where);
  const Instr& self = program_.instrs[instr];
  if (std::get<instr::Collective>(self.op).kind != instr::CollectiveKind::kAllToAll) return own;
  const double more = passes_over(machine_.software.issue.exchange_traffic.value *
                                  static_cast<double>(self.in[0].bytes.value));
  return more > 0 ? checked_duration(static_cast<double>(own.value) + more, self, machine_) : own;
}

Nanos KernelCosts::meeting_itself(std::size_t instr, const Where& where) const {
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
  if (instr == passing_)
    return text + fmt::format("    passes of {} over the sums of gradients {}\n", machine_.software.name,
                              to_string(Nanos(std::llround(passing_nanos_))));
  if (const double copies = copies_beside(self); copies > 0)
    return text + fmt::format("    copies of {} beside it {}\n", machine_.software.name,
                              to_string(Nanos(std::llround(copies))));
  if (members.size() == 1) return text;
  return text +
         fmt::format("    done by one kernel with {} more, which share its time\n", members.size() - 1);
}

}  // namespace hyperrun
