// The free time of the two transfer streams while a plan is made.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/offload/live_curve.h"
#include "runtime/offload/timeline.h"

namespace hyperrun {

// Two queues of transfers beside a Program's instructions. Stores run one after another, each as soon as its
// buffer is free; one more Store moves later ones back. Prefetches run one after another, each as late as
// possible; one more Prefetch makes earlier ones start sooner. Times (ns) are those of a Program without
// transfers.
class StreamTime {
 public:
  explicit StreamTime(const Timeline& timeline);

  // Whether one more Store can be added: its buffer's last use is instruction `from`, and the Store and all
  // that it delays must end before instruction `by` begins (the number of instructions: the Program ends).
  // Conservative: time in which the stream idles for a later Store does not count as free.
  bool has_for_store(std::int32_t from, std::int32_t by, std::int64_t lasts) const;
  // Whether one more Prefetch can be added: instruction `to` needs it, and neither it nor one that it
  // pushes forward may begin before instruction `since` does (-1: before the first). Equally conservative.
  bool has_for_prefetch(std::int32_t since, std::int32_t to, std::int64_t lasts) const;

  // The first `by` of [first, last] for which has_for_store() holds; last + 1 if there is none. More
  // transfers only make it later.
  std::int32_t first_for_store(std::int32_t from, std::int32_t first, std::int32_t last,
                               std::int64_t lasts) const;
  // The last `since` of [first, last] for which has_for_prefetch() holds; first - 1 if there is none. More
  // transfers only make it sooner.
  std::int32_t last_for_prefetch(std::int32_t first, std::int32_t last, std::int32_t to,
                                 std::int64_t lasts) const;

  std::int32_t instrs() const { return static_cast<std::int32_t>(begins_.size()) - 1; }

  // Adds a transfer to its queue.
  void store(std::int32_t from, std::int64_t lasts);
  void prefetch(std::int32_t to, std::int64_t lasts);

 private:
  // Begins by instruction, with one more entry for the end of the Program.
  std::vector<std::int64_t> begins_;  // ns: begin, made monotone from the end
  LiveCurve stores_;      // end of the instruction, less all stores that become possible before that
  LiveCurve prefetches_;  // all prefetches for it and earlier instructions, less its begin
  LiveCurve unstored_;    // its begin, less all stores that become possible before it
};

}  // namespace hyperrun
