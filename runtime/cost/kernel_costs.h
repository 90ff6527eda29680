// How long each instruction of a Program lasts, on a machine whose kernels may do several of them at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/kernels.h"
#include "runtime/ir/machine.h"
#include "runtime/ir/program.h"

namespace hyperrun {

class KernelCosts {
 public:
  // Program and machine outlive it.
  KernelCosts(const Program& program, const Machine& machine);

  // How many instructions its kernel does, itself among them.
  std::size_t together(std::size_t instr) const;
  // Of one that meets nobody: those of a kernel share its time equally.
  Nanos computing(std::size_t instr);
  // Of a collective: its part, by its bytes, of what one with all of its kernel's lasts.
  Nanos meeting(std::size_t instr, const Where& where) const;
  // How one that meets nobody is reckoned, for people.
  std::string explain(std::size_t instr) const;
  // How a collective is.
  std::string explain(std::size_t instr, const Where& where) const;

 private:
  // With all that its kernel exchanges.
  instr::Collective bucket(std::size_t instr) const;
  std::vector<const Instr*> kernel(std::size_t instr) const;

  const Program& program_;
  const Machine& machine_;
  std::optional<Kernels> kernels_;                // none: each instruction is one
  std::unordered_map<std::int32_t, Nanos> each_;  // of a kernel's instructions, by its first
};

}  // namespace hyperrun
