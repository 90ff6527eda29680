// What ZeRO finds to split of weights (Rajbhandari et al. 2020): one dimension over all axes that split
// tokens, if one divides, else for each of them the first that does (runtime/shard/rules.cc).
#pragma once

#include <array>

#include "runtime/ir/job.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// In the order in which ZeRO splits over them (runtime/ir/presets.h).
inline constexpr std::array kOfTokens{PlanAxis::kContext, PlanAxis::kRing, PlanAxis::kExpert,
                                      PlanAxis::kData};

// Of a weight: the model's width, or that of a feed-forward part as well.
enum class Widths { kOne, kTwo };

// Whether one dimension of each weight with these widths is split over all the axes at once.
bool splits_at_once(const Strategy& strategy, const ModelSpec& model, Widths widths);

// Whether of all weights that have the model's width a dimension is split along the axis, after those before
// it: that, if none else.
bool splits_along(const Strategy& strategy, const ModelSpec& model, PlanAxis axis);

}  // namespace hyperrun
