#include "runtime/sim/live_curves.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "runtime/ir/live_bytes.h"

namespace hyperrun {
namespace {

// Calls visit(time) after each beginning and end of an instruction.
template <class Visit>
void follow(const std::vector<Span>& spans, LiveBytes& live, Visit visit) {
  std::vector<std::tuple<std::int64_t, std::size_t, bool>> changes;
  changes.reserve(2 * spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    changes.emplace_back(spans[i].begin, i, false);
    changes.emplace_back(spans[i].end, i, true);
  }
  std::sort(changes.begin(), changes.end());
  for (const auto& [time, i, ends] : changes) {
    ends ? live.end(i) : live.begin(i);
    visit(time);
  }
}

}  // namespace

Bytes LivePoint::total() const { return std::accumulate(bytes.begin(), bytes.end(), Bytes{}); }

std::vector<LivePoint> live_by_category(const Program& program, const std::vector<Span>& spans) {
  LiveBytes live(program);
  std::vector<LivePoint> points{{0, live.now()}};
  follow(spans, live, [&](std::int64_t time) {
    if (live.now() != points.back().bytes) points.push_back({time, live.now()});
  });
  return points;
}

std::array<Curve, kTiers> live_over_time(const Program& program, const std::vector<Span>& spans) {
  LiveBytes live(program);
  std::array<Curve, kTiers> curves;
  follow(spans, live, [&](std::int64_t time) { record_live(curves, time, live); });
  return curves;
}

}  // namespace hyperrun
