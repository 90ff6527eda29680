// The search space: all strategies of a job. shapes_of() factors its devices into axes; each_of_shape()
// visits the combinations of ZeRO, schedule, recomputation and micro-batches for one of these shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/constraint.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// Ring attention takes as many steps as the ring has devices, so larger rings do not pay.
inline constexpr std::int32_t kMostRing = 32;
// Each further chunk of a device shortens the bubble less, and adds messages.
inline constexpr std::int32_t kMostChunks = 64;

// The features that a planner can use. The restricted spaces describe other planners, after their manuals,
// for comparison.
struct Space {
  std::string_view name;
  std::string_view meaning;    // one sentence
  bool two_dimensions = true;  // needs the preset "tp2d"
  bool ring = true;
  bool ulysses = true;
  bool ulysses_beside = true;  // together with tensor or pipeline parallelism
  bool expert_width = true;    // needs the preset "etp"
  bool spread_experts = true;  // needs the preset "ep_tp"
  bool interleaved = true;     // several chunks a device
  bool zero_bubble = true;
  bool uneven = true;  // stages with unequal layers (balance.h)
  bool offload = true;
  std::int32_t most_zero = 3;           // highest ZeRO stage without a pipeline
  std::int32_t most_zero_in_pipes = 3;  // highest ZeRO stage with a pipeline
  std::vector<Constraint> only;         // constraints of the user

  // True if tensors may leave HBM, given the constraints as well.
  bool may_offload() const;
};
const std::vector<Space>& spaces();
// Throws kUsage if no space has this name.
const Space& space_named(std::string_view name);

// All combinations of axis sizes: their product is the number of devices, replicas divide the batch, each
// stage has a layer, and constraints on sizes hold. A shape is a Strategy with these sizes, one axis order
// and defaults otherwise.
std::vector<Strategy> shapes_of(const Job& job, const Space& space);

// Calls `visit` for every strategy of one shape with even stages, without offloading, whose micro-batches
// divide the batch. Constraints are not checked. balance.h adds uneven stages, orders_of() other axis orders.
// Tensors may turn out not to divide. Successive strategies differ in the last three of samples, recompute,
// zero, schedule and chunks.
void each_of_shape(const Job& job, const Space& space, const Strategy& shape,
                   const std::function<void(const Strategy&)>& visit);

// Calls `visit` for every strategy of every shape.
void each_strategy(const Job& job, const Space& space, const std::function<void(const Strategy&)>& visit);

// True if this space has every feature that `strategy` uses. Constraints are ignored.
bool can_express(const Space& space, const Strategy& strategy);

// True if the strategy, in some axis order, is in the space and meets its constraints, with or without
// offloading.
bool has(const Space& space, const Job& job, const Strategy& strategy);

// The strategy in every order of its axes.
std::vector<Strategy> orders_of(const Strategy& strategy);

}  // namespace hyperrun
