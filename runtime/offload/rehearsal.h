// What comes of absences, without the Program that apply() would make of them: planning asks that of many,
// and takes one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "memory/offset_allocator.h"
#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

class Rehearsal {
 public:
  // Of a Program without places and events, and of its instructions' durations. `transfer`: how long one
  // takes, each way; `alignment_beyond`: of places there; `most_pairs`: of assign_offsets(). Program and uses
  // outlive it.
  Rehearsal(const Program& program, const std::vector<BufferUses>& uses, std::vector<Nanos> durations,
            const std::function<Nanos(Bytes)>& transfer, Bytes alignment_beyond,
            std::int64_t most_pairs = kMostPairs);

  struct Outcome {
    Bytes peak{};       // with places; or what lives at once, where that is above the budget already
    Timeline timeline;  // as timeline_as_placed() has it; where the peak is above the budget, of nothing
    Bytes beyond{};     // that lie there and are no state; where the peak is above the budget, none
  };
  // `state`: what lies in HBM below all else. Places are those of place_buffers(). A kernel that does several
  // instructions takes its time also where they are torn apart.
  Outcome of(const Absences& absences, Bytes state, Bytes budget) const;
  // Whether its peak is not above the budget.
  bool fits(const Absences& absences, Bytes state, Bytes budget) const;
  // With the lowest peak that places are found for, which is that of any budget below it.
  Outcome lowest(const Absences& absences, Bytes state) const;

  // Of an instruction's operand: cells of its buffer, which are cut where operands begin and end.
  struct Touch {
    std::int32_t buffer = 0, cell = 0, cells = 0;
    bool read = false, write = false;
  };
  std::span<const Touch> touches(std::int32_t instr) const {
    const auto i = static_cast<std::size_t>(instr);
    return std::span(touches_).subspan(static_cast<std::size_t>(touched_[i]),
                                       static_cast<std::size_t>(touched_[i + 1] - touched_[i]));
  }
  // Where the cells of a buffer begin, and the end of the last.
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
  void note_touches();

  const Program& program_;
  const std::vector<BufferUses>& uses_;
  std::vector<Nanos> durations_, transfers_;  // by instruction and by buffer
  std::vector<std::int32_t> touched_, cut_;   // by instruction and by buffer: the first of its own
  std::vector<Touch> touches_;
  std::vector<std::int64_t> cuts_;
  Bytes alignment_beyond_;
  std::int64_t most_pairs_;
};

}  // namespace hyperrun
