// Live bytes of a device over virtual time: a Program's buffers along the spans of its instructions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// The live bytes in HBM from `time` on, by category.
struct LivePoint {
  std::int64_t time = 0;
  CategoryBytes bytes{};

  Bytes total() const;
  bool operator==(const LivePoint&) const = default;
};

// Returns a point for each change, from the beginning on. Buffers begin and cease to live with instructions.
// Changes of one moment come in the order of the Program, so that a moment may have several points.
// Instructions overlap here: the maximum may differ from that of peak_use, which follows the Program's order.
// It is never above the Program's peak in the arena.
std::vector<LivePoint> live_by_category(const Program& program, const std::vector<Span>& spans);

// Returns live bytes by tier, all categories together; for HBM there is a point for each beginning and end.
std::array<Curve, kTiers> live_over_time(const Program& program, const std::vector<Span>& spans);

}  // namespace hyperrun
