// Lower bound of a backward pass in which ZeRO 2 or 3 scatters gradients over the devices that repeat weights
// (Rajbhandari et al. 2020). The compiler puts each scatter directly behind the instruction that makes the
// gradient. Streams are in order, so later communication waits for it, and with it the products that need
// that communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/plan/instr_order.h"
#include "runtime/plan/layer_profile.h"

namespace hyperrun {

// Longest paths through the instructions of one pass.
class GradientScatterBound {
 public:
  // All arguments must outlive this; vectors are by instruction. `durations`: ns. `bytes`: gradients that are
  // complete when the instruction ends and are then scattered. The Program itself has no scatter.
  GradientScatterBound(const InstrOrder& order, const std::vector<StreamKind>& streams,
                       const std::vector<double>& durations, const std::vector<std::int64_t>& bytes);

  // Longest path from the begin of `from` to the begin of each instruction up to `to` (included), for a
  // scatter that takes `per_byte` ns a byte; -infinity if there is no path. The same path exists for any
  // other time a byte, so each result is a lower bound there too.
  std::vector<ScatterTime> begins(std::size_t from, std::size_t to, double per_byte) const;

 private:
  const InstrOrder& order_;
  const std::vector<StreamKind>& streams_;
  const std::vector<double>& durations_;
  const std::vector<std::int64_t>& bytes_;
};

}  // namespace hyperrun
