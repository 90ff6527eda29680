// Fusion groups: instructions of a Program that a machine with fused kernels would run as one kernel.
//
//   side by side   Products of one size that read the same kernel's result (queries, keys and values), and
//                  the additions or sums on their results: as if their operands were concatenated.
//   chained        Elementwise instructions on a result that was just computed elementwise (a bias and the
//                  activation behind it), and the sums of a norm with the norm.
//   joined         Products of any widths that share an operand, as a framework runs them that has their
//   weights
//                  in one tensor: of one input, for one input's gradient, of experts likewise.
//   bucketed       Work that is done once a step on all weights or gradients: casts, AdamW, and all-reduces
//                  along the same axes.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

class FusionGroups {
 public:
  // The instructions of the group that an instruction is in, itself included, in Program order.
  const std::vector<std::int32_t>& operator[](std::size_t instr) const {
    return instrs_[static_cast<std::size_t>(of_[instr])];
  }

 private:
  friend class FusionGrouper;
  std::vector<std::int32_t> of_;                   // by instruction: the first of its group
  std::vector<std::vector<std::int32_t>> instrs_;  // by the first instruction of a group
};
// `joins`: products are joined as well.
FusionGroups fusion_groups_of(const Program& program, bool joins = false);

}  // namespace hyperrun
