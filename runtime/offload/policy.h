// Offload policies: which buffers leave HBM, and when. A policy plans one Program at compile time. apply()
// (apply.h) turns its plan into instructions.
#pragma once

#include <functional>
#include <span>

#include "runtime/base/units.h"
#include "runtime/offload/offload_plan.h"
#include "runtime/offload/timeline.h"
#include "runtime/offload/uses.h"

namespace hyperrun {

struct OffloadProblem {
  const Program& program;  // without offsets and events
  const std::vector<BufferUses>& uses;
  const Timeline& timeline;
  std::function<Nanos(Bytes)> transfer;  // duration of one transfer, in either direction
  Bytes target;                          // upper limit of live bytes in HBM
  // State buffers that other Programs of the job already keep below HBM.
  std::vector<std::int32_t> offloaded_state;
  bool may_offload_state = true;  // the plan may offload further state

  OffloadProblem with(const Timeline& other_times, Bytes other_target) const {
    return {program, uses, other_times, transfer, other_target, offloaded_state, may_offload_state};
  }
};

// The live peak if every movable buffer is in HBM only while it is used. No plan gets below it.
Bytes lowest_live_peak(const OffloadProblem& problem);

// `hyperoffload` tries these policies and takes the best plan. The first four share the gap planner:
//
//   1. While more is live than the target, take the best gap that covers the fullest instruction. The
//      policies differ in what is best; mostly it is a gap that is long beside the time of its transfers.
//   2. All stores queue on their stream as soon as possible, all prefetches as late as possible. A delay
//      keeps buffers in HBM for longer, so step 1 is repeated.
//   3. If that is still too much, buffers leave sooner or return later than time would allow.
//   4. If there is room left, prefetches start earlier (retime()).
//
// The best plan is NP-hard to find. Each transfer's place minimises max(0, transfer - overlapped
// computation).

// Takes the gaps with the longest absence per transfer time.
OffloadPlan gap_policy(const OffloadProblem& problem);

// Like gap_policy, but last takes state whose transfers at the ends of the Program cannot be hidden.
OffloadPlan hidden_state_policy(const OffloadProblem& problem);

// Like hidden_state_policy, but a buffer may also be rematerialized, by the instruction that wrote it (Chen
// et al. 2016, Training Deep Nets with Sublinear Memory Cost). That costs time of computing and no transfer.
// The cheapest per time of absence goes first.
OffloadPlan rematerialize_policy(const OffloadProblem& problem);

// Takes gaps in this order: those whose transfers find free time on the streams beside all taken before;
// those that are rematerialized; the others. A transfer that only delays another frees no memory.
OffloadPlan slack_policy(const OffloadProblem& problem);

// Belady's rule (1966): evict the buffer whose next use is farthest away, and prefetch it as soon as there is
// room and it is time. It moves the fewest bytes; the gap policies move more, with more time for it.
OffloadPlan belady_policy(const OffloadProblem& problem);

// A runtime that does not know the Program (`reactive`): each instruction fetches what it uses, and the least
// recently used buffers make room. Clean buffers are dropped, not written again.
OffloadPlan lru_policy(const OffloadProblem& problem);

// Sets the times of a plan's evictions. Buffers leave as soon as they are stored. Prefetches start as early
// as their stream needs for all to be in time, and a little sooner, as far as the target allows.
void retime(const OffloadProblem& problem, OffloadPlan& plan);

}  // namespace hyperrun
