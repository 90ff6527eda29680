// Which instructions of a Program one kernel does, on machines whose kernels do several at once. As libraries
// and fused kernels have it:
//
//   side by side   products of one size that read what one kernel has made (queries, keys and values), and
//                  what is added to each of them, or summed up of each: as if their operands were one
//   in a chain     elementwise work on what was just made elementwise (a bias, then what follows it), and the
//                  sums of a norm with the norm
//   in a bucket    what is done once a step to all weights, or to their gradients: casts, AdamW, and
//                  all-reduces along the same axes
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

class Kernels {
 public:
  // Of each instruction: those of its kernel, itself among them, in the order of the Program.
  const std::vector<std::int32_t>& operator[](std::size_t instr) const {
    return instrs_[static_cast<std::size_t>(of_[instr])];
  }

 private:
  friend class Grouping;
  std::vector<std::int32_t> of_;                   // by instruction: the first of its kernel
  std::vector<std::vector<std::int32_t>> instrs_;  // by that
};
Kernels kernels_of(const Program& program);

}  // namespace hyperrun
