// A step whose micro-batches repeat is planned with few of them: what is decided for one in the middle is
// decided for all that are left out.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// A Program without instructions [cut, cut + removed()) of another one, the whole, which repeats itself
// there: `left_out` periods. Those that it keeps of what repeats are [from, to).
struct Fold {
  Program program;                    // without names of instructions
  std::vector<Nanos> durations;       // by instruction
  std::vector<std::int32_t> buffers;  // by buffer: that of the whole
  std::int32_t cut = 0, period = 0, left_out = 0;
  std::int32_t from = 0, to = 0;
  std::int32_t reach = 0;  // instructions from a use of a buffer to its next one, at most, in what repeats

  std::int32_t removed() const { return period * left_out; }
  // How long the whole takes, about, when this Program's instructions run so: what is left out as long as
  // most periods do. Where a timeline is of nothing: nothing.
  std::int64_t length_of_whole(const Timeline& timeline) const;
  // Of what is for the whole.
  std::int64_t share_of(std::int64_t much) const {
    const std::int64_t n = std::ssize(program.instrs);
    return much * n / (n + removed());
  }
  // Where the left out periods may be put: they are all as the one that ends there. The middle comes first.
  std::vector<std::int32_t> seams() const;
};

// Nothing, where less than half would be left out. `timeline`: of `durations`; so long a time is kept of what
// repeats, on each side, that transfers of the Program's ends hide there as they do in the whole.
std::optional<Fold> fold(const Program& whole, const std::vector<BufferUses>& uses,
                         std::span<const Nanos> durations, const Timeline& timeline, Nanos kept);

// The absences of the whole that those of the fold are, if each left out period is as the one before `seam`;
// nothing, where they do not go together so. `uses`: of the whole.
std::optional<Absences> unfold(const Fold& fold, const Absences& absences,
                               const std::vector<BufferUses>& uses_of_fold, const Program& whole,
                               const std::vector<BufferUses>& uses, std::int32_t seam);

}  // namespace hyperrun
