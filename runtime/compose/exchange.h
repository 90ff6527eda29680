// The exchange of weights between two plans with different devices and layouts, for example from the program
// that trains a model to the program that generates with it.
//
// Every receiving device gets the boxes of each tensor that it holds. Each box comes from one device that has
// it: from itself if possible, else from the holders in turn. Boxes move from device to device; no device has
// a copy of the whole tensor. Data types may differ: the sender converts.
#pragma once

#include <string>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A plan with final offsets (colocate.h), whose device d is rank ranks[d].
struct PlacedPlan {
  const Plan& plan;
  std::vector<int> ranks;
};

// A plan with the Program "exchange", which copies the weights of `from` to `to`. Every rank is a role of its
// own. `above` is the end of all state, by rank; messages lie above it. Throws kBadLayout if `from` lacks a
// tensor of `to`, or has it with another shape.
Plan compile_exchange(const PlacedPlan& from, const PlacedPlan& to, const std::vector<TierBytes>& above);

}  // namespace hyperrun
