// Evaluates offload plans without building the Programs that apply() would make of them. Planning tries many
// plans and keeps one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "memory/offset_allocator.h"
#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/offload/offload_plan.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

class PlanEvaluator {
 public:
  // `program` has neither offsets nor events; it and `uses` outlive the evaluator. `durations`: of its
  // instructions. `transfer`: duration of one transfer, in either direction. `tier_alignment`: of offsets in
  // the lower tier. `most_pairs`: see assign_offsets().
  PlanEvaluator(const Program& program, const std::vector<BufferUses>& uses, std::vector<Nanos> durations,
                const std::function<Nanos(Bytes)>& transfer, Bytes tier_alignment,
                std::int64_t most_pairs = kMostPairs);

  struct Outcome {
    Bytes peak{};       // of placed buffers; the live peak if that alone exceeds the budget
    Timeline timeline;  // as from timeline_as_placed(); empty if the peak exceeds the budget
    Bytes beyond{};     // peak of buffers in the lower tier, without state; 0 if over the budget
  };
  // `state`: HBM taken by resident state, below all else. Offsets are those of place_buffers(). Instructions
  // of one fusion group keep their durations even if a transfer separates them.
  Outcome evaluate(const OffloadPlan& plan, Bytes state, Bytes budget) const;
  // Whether the peak is within the budget. Computes no times.
  bool fits(const OffloadPlan& plan, Bytes state, Bytes budget) const;
  // The outcome with the lowest peak that offsets are found for; every smaller budget gives the same peak.
  Outcome evaluate_lowest(const OffloadPlan& plan, Bytes state) const;

  // An operand's range in its buffer, in cells. A buffer is cut into cells wherever an operand begins or
  // ends.
  struct Touch {
    std::int32_t buffer = 0;
    std::int32_t cell = 0;   // the first
    std::int32_t cells = 0;  // count
    bool read = false, write = false;
  };
  std::span<const Touch> touches(std::int32_t instr) const {
    const auto i = static_cast<std::size_t>(instr);
    return std::span(touches_).subspan(static_cast<std::size_t>(touched_[i]),
                                       static_cast<std::size_t>(touched_[i + 1] - touched_[i]));
  }
  // Offsets at which the cells of a buffer begin, and the end of the last.
  std::span<const std::int64_t> cuts(std::int32_t buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(cuts_).subspan(static_cast<std::size_t>(cut_[b]),
                                    static_cast<std::size_t>(cut_[b + 1] - cut_[b]));
  }
  const Program& program() const { return program_; }
  const std::vector<BufferUses>& uses() const { return uses_; }
  const std::vector<Nanos>& durations() const { return durations_; }
  std::int64_t most_pairs() const { return most_pairs_; }
  Nanos duration(std::int32_t instr) const { return durations_[static_cast<std::size_t>(instr)]; }
  Nanos transfer(std::int32_t buffer) const { return transfers_[static_cast<std::size_t>(buffer)]; }

 private:
  void cut_buffers();
  void collect_touches();

  const Program& program_;
  const std::vector<BufferUses>& uses_;
  std::vector<Nanos> durations_;       // by instruction
  std::vector<Nanos> transfers_;       // by buffer
  std::vector<std::int32_t> touched_;  // by instruction: its first touch
  std::vector<std::int32_t> cut_;      // by buffer: its first cut
  std::vector<Touch> touches_;
  std::vector<std::int64_t> cuts_;
  Bytes tier_alignment_;
  std::int64_t most_pairs_;
};

}  // namespace hyperrun
