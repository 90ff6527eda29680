// Planning of long steps. The micro-batches of a step repeat the same instructions, so planning uses a
// shorter Program with fewer of them. Its plan is then expanded: every omitted period gets the evictions of
// the period before the splice point.
//
//   whole        begin  P P P P P P P P P P  end
//   compressed   begin  P P P|P P P          end     | cut: four periods are omitted here
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/offload/offload_plan.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// The whole Program without instructions [cut, cut + removed()).
struct CompressedProgram {
  Program program;                    // without names of instructions
  std::vector<Nanos> durations;       // by instruction
  std::vector<std::int32_t> buffers;  // by buffer: its number in the whole Program
  std::int32_t cut = 0;
  std::int32_t period = 0;        // instructions
  std::int32_t omitted = 0;       // periods
  std::int32_t from = 0, to = 0;  // range of the remaining periods
  std::int32_t reach = 0;         // the longest distance between two uses of a buffer in the periods

  // Instructions that are omitted.
  std::int32_t removed() const { return period * omitted; }
  // Estimates how long the whole Program takes, given a timeline of this one: an omitted period takes the
  // median time of the others. 0 for an empty timeline.
  std::int64_t length_of_whole(const Timeline& timeline) const;
  // Scales an amount for the whole Program down to this one.
  std::int64_t share_of(std::int64_t amount) const {
    const std::int64_t n = std::ssize(program.instrs);
    return amount * n / (n + removed());
  }
  // Instructions at which the omitted periods may be inserted again, the middle first.
  std::vector<std::int32_t> splice_points() const;
};

// Returns nullopt if less than half of the Program can be omitted. `timeline`: from `durations`. `kept`: time
// of periods to keep on each side of the cut, so that transfers at the ends of the Program hide behind them
// as they do in the whole.
std::optional<CompressedProgram> compress_period(const Program& whole, const std::vector<BufferUses>& uses,
                                                 std::span<const Nanos> durations, const Timeline& timeline,
                                                 Nanos kept);

// Expands a plan of the compressed Program to the whole one: each omitted period is evicted like the one
// before `splice`. Returns nullopt if the evictions do not fit together there. `uses`: of the whole Program.
std::optional<OffloadPlan> expand_period(const CompressedProgram& compressed, const OffloadPlan& plan,
                                         const std::vector<BufferUses>& compressed_uses, const Program& whole,
                                         const std::vector<BufferUses>& uses, std::int32_t splice);

}  // namespace hyperrun
