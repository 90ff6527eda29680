// How long a piece of a backward pass takes at least where ZeRO scatters gradients over the devices that
// repeat weights, each right behind the instruction that makes it (stages 2 and 3; Rajbhandari et al. 2020).
// The compiler puts that in front of all that comes later, and streams are in order: what communicates next
// waits, and with it the products behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/plan/instr_order.h"
#include "runtime/plan/pieces.h"

namespace hyperrun {

// Of the instructions of a piece, from its first product to the next one's.
class Scattering {
 public:
  // All outlive it. `streams`, `durations` (ns) and `bytes` are by instruction of the Program; `bytes`: of
  // the gradients that are there when it has ended, and are scattered. Nothing of these is scattered in the
  // Program.
  Scattering(const InstrOrder& order, const std::vector<StreamKind>& streams,
             const std::vector<double>& durations, const std::vector<std::int64_t>& bytes);

  // The longest paths from the begin of `from` to that of each instruction until `to` (included) where a byte
  // takes so many ns, -infinity where there is none. Whatever a byte takes, they are there as well: each is a
  // bound.
  std::vector<Scattered> begins(std::size_t from, std::size_t to, double per_byte) const;

 private:
  const InstrOrder& order_;
  const std::vector<StreamKind>& streams_;
  const std::vector<double>& durations_;
  const std::vector<std::int64_t>& bytes_;
};

}  // namespace hyperrun
