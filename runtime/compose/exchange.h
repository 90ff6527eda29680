// Tensors on their way from one plan to another, whose devices and layouts are others: from the learner of a
// model to those who generate with it, say.
//
// Of each tensor every receiving device gets the boxes that it holds, each from one of the devices that hold
// it (itself where it is one of them, or else the holders in turn), device to device and without a copy of
// the whole tensor anywhere. Data types may differ: the sender rounds.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A plan in its place: its state where it lies for good (colocate.h), its device d on rank ranks[d].
struct PlacedPlan {
  const Plan& plan;
  std::vector<int> ranks;
};

// The Program "exchange" of every rank, a role each: `to`'s weights become those of `from`. `above`: by rank,
// the end of all state that lies there; what is on its way lies above it.
// Throws kBadLayout where `from` has no such tensor, or one of another shape.
Plan compile_exchange(const PlacedPlan& from, const PlacedPlan& to, const std::vector<TierBytes>& above);

}  // namespace hyperrun
