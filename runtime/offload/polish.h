// The last touch to a plan: what one gap, or two, would better do otherwise.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/offload/rehearsal.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

// A local search from `absences`: gaps between two uses are spent otherwise, one and then two at a time, as
// long as the step becomes shorter, or needs less of what it has too much. Ends without a change where trying
// each gap once would take more than `most` instructions of rehearsals, else after about so many. Which state
// has its home beyond HBM stays. `state`, `budget`: of Rehearsal::of().
Absences polished(const Rehearsal& rehearsal, Absences absences, Bytes state, Bytes budget,
                  std::int64_t most);

// The same, and where they are few also from each way to spend all gaps at once: of each the buffer stays, or
// is away as long as it may be, or is made again just before it is used. The best of these.
Absences polished_from_all(const Rehearsal& rehearsal, Absences absences, Bytes state, Bytes budget,
                           std::int64_t most);

}  // namespace hyperrun
