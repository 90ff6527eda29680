// The weights that ZeRO can split (Rajbhandari et al. 2020): one dimension over all data axes, if one
// divides; else for each axis the first dimension that divides (runtime/shard/rules.cc).
#pragma once

#include <array>

#include "runtime/ir/job.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Axes in the order in which ZeRO splits over them (runtime/ir/presets.h).
inline constexpr std::array kTokenAxes{PlanAxis::kContext, PlanAxis::kRing, PlanAxis::kExpert,
                                       PlanAxis::kData};

// Widths of a weight: the model's only, or also that of a feed-forward part.
enum class Widths { kOne, kTwo };

// True if every weight with these widths has a dimension that divides by all data axes together.
bool splits_at_once(const Strategy& strategy, const ModelSpec& model, Widths widths);

// True if every weight with the model's width divides along this axis, after the axes before it.
bool splits_along(const Strategy& strategy, const ModelSpec& model, PlanAxis axis);

}  // namespace hyperrun
