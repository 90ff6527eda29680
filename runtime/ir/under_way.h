// How long communication of each kind was under way, and how much of that nothing was computed beside it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/ir/stats.h"

namespace hyperrun {

class UnderWayByKind {
 public:
  // `kinds`: with which of these the numbers are kept; what a collective's kind is not among is left out.
  // `program` outlives it.
  UnderWayByKind(const Program& program, std::span<const TrafficKind> kinds);

  // By when each instruction ran, where each stream takes its instructions in order. One a kind; a collective
  // is under way from when the device comes to it. Valid until the next call; allocates nothing.
  const std::vector<UnderWay>& measure(std::span<const Span> spans);

 private:
  std::int64_t computed_before(std::int64_t time) const;
  void find_computing(std::span<const Span> spans);

  std::vector<std::int32_t> cube_, vector_;                           // instructions
  std::vector<std::pair<std::int32_t, std::int32_t>> communicating_;  // instruction, kind
  std::vector<Span> computing_;                                       // disjoint, in order
  std::vector<std::int64_t> before_;  // of each: how long all earlier ones lasted
  std::vector<UnderWay> result_;
};

}  // namespace hyperrun
