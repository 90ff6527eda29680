// What lives on a device over virtual time: a Program's buffers along the spans of its instructions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// In HBM from `time` on.
struct LivePoint {
  std::int64_t time = 0;
  CategoryBytes bytes{};

  Bytes total() const;
  bool operator==(const LivePoint&) const = default;
};

// From the beginning, a point for each change. Buffers live and die with instructions; of those that happen
// at one moment the earlier one in the Program comes first, so that a moment may have several points.
// Instructions overlap here: the most that lives may be another than that of peak_use, which goes by the
// Program's order, but is never above the Program's peak in the arena.
std::vector<LivePoint> live_by_category(const Program& program, const std::vector<Span>& spans);

// The same of each tier, all categories together; of HBM a point for each beginning and end.
std::array<Curve, kTiers> live_over_time(const Program& program, const std::vector<Span>& spans);

}  // namespace hyperrun
