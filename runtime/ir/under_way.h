// Measures how long each kind of communication took, and how much of that was exposed: nothing was computed
// at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/ir/stats.h"

namespace hyperrun {

class UnderWayByKind {
 public:
  // `kinds`: the kinds to measure, in the order of the results; collectives of other kinds are left out.
  // `program` must outlive this object.
  UnderWayByKind(const Program& program, std::span<const TrafficKind> kinds);

  // One result for each kind, from the spans of the instructions; each stream runs its instructions in order.
  // The time of a collective begins when the device reaches it. The result is valid until the next call.
  // Allocates nothing.
  const std::vector<UnderWay>& measure(std::span<const Span> spans);

 private:
  std::int64_t computed_before(std::int64_t time) const;
  void find_computing(std::span<const Span> spans);

  std::vector<std::int32_t> cube_, vector_;                           // instructions of these streams
  std::vector<std::pair<std::int32_t, std::int32_t>> communicating_;  // instruction, kind
  std::vector<Span> computing_;       // times of computing, disjoint, in order
  std::vector<std::int64_t> before_;  // for each of `computing_`: total length of all earlier ones
  std::vector<UnderWay> result_;
};

}  // namespace hyperrun
