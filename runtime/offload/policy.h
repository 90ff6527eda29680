// Who decides what leaves HBM, and when it is back. All policies decide at compile time, for one Program;
// what they decide becomes instructions (apply.h).
#pragma once

#include <functional>
#include <span>

#include "runtime/base/units.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

struct OffloadProblem {
  const Program& program;  // without places and events
  const std::vector<BufferUses>& uses;
  const Timeline& timeline;
  std::function<Nanos(Bytes)> transfer;  // how long one takes, each way
  Bytes target;                          // live bytes in HBM, at most
  // State that other Programs of the job have beyond HBM is there in this one too.
  std::vector<std::int32_t> homes;
  bool new_homes = true;  // further state may move there

  OffloadProblem with(const Timeline& other_times, Bytes other_target) const {
    return {program, uses, other_times, transfer, other_target, homes, new_homes};
  }
};

// With all beyond HBM that may be, whenever it is not used: no plan gets below that.
Bytes least_live(const OffloadProblem& problem);

// HyperOffload decides in five ways, of which the better is taken for a Program. By gaps: a gap between two
// uses of a buffer is worth a journey when it is long beside the transfers: where too much is live, the gaps
// that have most time for theirs are taken first. Then all stores and all prefetches queue for their stream,
// stores as soon as they may, prefetches as late as they may; what the queue delays stays longer, and more
// gaps are taken for it. What still does not fit leaves sooner or comes later than is good for time. Room
// that is left lets prefetches start sooner than they have to.
//
// The best order is NP-hard; the place in time of each transfer minimises max(0, transfer - computing that
// it overlaps).
Absences plan_by_gaps(const OffloadProblem& problem);

// The same, but state that has to come or go at an end of the Program, where nothing hides it, is taken last.
Absences plan_by_hiding(const OffloadProblem& problem);

// The same, and what comes back may also be made again by the instruction that made it, from what is there
// then (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016, within one instruction): it costs
// time of computing and none of transfers. What costs least for the time away is taken first.
Absences plan_by_remaking(const OffloadProblem& problem);

// By gaps, what may be made again among them: first those whose transfers find the streams free beside the
// transfers of all that were taken before; then what is made again; then others. A transfer that only takes
// another one's time makes no room.
Absences plan_by_streams(const OffloadProblem& problem);

// By the next use: where room is needed that leaves which is used again last (Belady 1966), and comes back as
// soon as there is room again and it is time. It moves the least; gaps move more, with more time for it.
Absences plan_by_next_use(const OffloadProblem& problem);

// What a runtime does that does not know the program: at each instruction what it uses is fetched, and what
// was not used for longest makes room. Clean copies are dropped and not written again.
Absences react(const OffloadProblem& problem);

// Keeps what is decided and sets when: buffers leave as soon as they are stored, and prefetches start as
// early as their stream has to begin for all of them to be in time, and a little sooner, where that keeps to
// the target.
void retime(const OffloadProblem& problem, Absences& absences);

}  // namespace hyperrun
