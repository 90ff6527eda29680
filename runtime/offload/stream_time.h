// How much time the two streams of transfers still have, while a plan is made.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/offload/live_curve.h"
#include "runtime/offload/timeline.h"

namespace hyperrun {

// Stores are done one after the other, each as soon as it may; prefetches too, each as late as it may. So one
// more moves others: stores to later, prefetches to sooner. Times are those of instructions in a Program
// without transfers; ns.
class StreamTime {
 public:
  explicit StreamTime(const Timeline& timeline);

  // Of what instruction `from` is the last to use before: whether there is time for one more Store, so that
  // it and all that it moves are done when instruction `by` begins (as many as there are: at the end). Time
  // in which the stream waits for what may only leave later is not counted upon.
  bool has_for_store(std::int32_t from, std::int32_t by, std::int64_t lasts) const;
  // Of what instruction `to` needs: whether there is time for one more Prefetch, so that neither it nor any
  // that it moves begins before instruction `since` does (-1: before the first); likewise.
  bool has_for_prefetch(std::int32_t since, std::int32_t to, std::int64_t lasts) const;

  // The first instruction of [first, last] by which a Store has time, and the last one since which a Prefetch
  // has; last + 1 and first - 1: none. With more transfers the one only becomes later, the other sooner.
  std::int32_t first_for_store(std::int32_t from, std::int32_t first, std::int32_t last,
                               std::int64_t lasts) const;
  std::int32_t last_for_prefetch(std::int32_t first, std::int32_t last, std::int32_t to,
                                 std::int64_t lasts) const;

  std::int32_t instrs() const { return static_cast<std::int32_t>(begins_.size()) - 1; }

  void store(std::int32_t from, std::int64_t lasts);
  void prefetch(std::int32_t to, std::int64_t lasts);

 private:
  // By instruction: when it begins, no later than those behind it; one more, when the last one ends.
  std::vector<std::int64_t> begins_;
  LiveCurve stores_;  // when what it is the last to use may leave, less all stores of instructions before it
  LiveCurve prefetches_;  // all prefetches for it and for those before it, less when it begins
  LiveCurve unstored_;    // when it begins, less all stores of instructions before it
};

}  // namespace hyperrun
