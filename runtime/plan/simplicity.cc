#include <fmt/core.h>

#include <array>
#include <cstddef>

#include "runtime/plan/robust.h"

namespace hyperrun {
namespace {

constexpr std::size_t kTraits = 5;

// How much a strategy uses of each mechanism, the most demanding mechanism first.
std::array<int, kTraits> mechanisms(const Strategy& s) {
  const bool takes_turns =
      s.schedule == PlanSchedule::kInterleaved || s.schedule == PlanSchedule::kZeroBubble;
  const bool is_pipeline = s[PlanAxis::kPipeline] > 1;
  return {s.memory == PlanMemory::kNone ? 0 : 1, static_cast<int>(mesh_of(s).size()),
          is_pipeline && takes_turns ? 1 : 0,
          2 * static_cast<int>(s.recompute) + (s.extra_recompute_layers > 0 ? 1 : 0), s.zero};
}

std::string reason(std::size_t trait, int less, int more) {
  switch (trait) {
    case 0: return "it moves no tensors beyond HBM";
    case 1: return fmt::format("it has {} {} instead of {}", less, less == 1 ? "axis" : "axes", more);
    case 2: return "its pipeline is a plain one";
    case 3: return "it recomputes less";
    default: return "it shards less of the state";
  }
}

}  // namespace

std::string simpler_because(const Strategy& a, const Strategy& b) {
  const auto of_a = mechanisms(a), of_b = mechanisms(b);
  for (std::size_t t = 0; t < kTraits; ++t) {
    if (of_a[t] < of_b[t]) return reason(t, of_a[t], of_b[t]);
    if (of_a[t] > of_b[t]) return "";
  }
  return "";
}

}  // namespace hyperrun
