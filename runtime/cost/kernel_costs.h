// Durations of a Program's instructions on a machine that may run fusion groups as one kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/fusion_groups.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class KernelCosts {
 public:
  // Program and machine outlive it.
  KernelCosts(const Program& program, const Machine& machine);

  // The size of the instruction's fusion group.
  std::size_t together(std::size_t instr) const;
  // The duration of an instruction that does not communicate. A group's instructions share its time equally.
  Nanos computing(std::size_t instr);
  // The duration of a collective: its share, by bytes, of one collective for its whole group.
  Nanos meeting(std::size_t instr, const Where& where) const;
  // Lines of text that explain computing().
  std::string explain(std::size_t instr) const;
  // Lines of text that explain meeting().
  std::string explain(std::size_t instr, const Where& where) const;

 private:
  // One collective with the bytes of the whole group.
  instr::Collective bucket(std::size_t instr) const;
  std::vector<const Instr*> kernel(std::size_t instr) const;
  Nanos computing_itself(std::size_t instr);
  Nanos meeting_itself(std::size_t instr, const Where& where) const;
  // ns that the memory takes to read or write so many bytes.
  double passes_over(double bytes) const;
  double copies_beside(const Instr& instr) const;  // ns
  void add_gradient_traffic();

  const Program& program_;
  const Machine& machine_;
  std::optional<FusionGroups> groups_;  // nullopt: no instructions are fused
  // The time of each of its instructions, by the first instruction of a group.
  std::unordered_map<std::int32_t, Nanos> each_;
  // The instruction with which the software passes over all sums of gradients, and how long that takes.
  std::optional<std::size_t> passing_;
  double passing_nanos_ = 0;
};

}  // namespace hyperrun
