// All strategies of a job: how its devices factor into axes, with everything that does not follow from that.
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

// A layer's attention goes round a ring in as many steps as it has devices: larger ones are not looked at.
inline constexpr std::int32_t kMostRing = 32;
// Each more of a device's stages makes the rest of the bubble a little less, and messages more.
inline constexpr std::int32_t kMostChunks = 64;

// What a planner can express. The restricted ones are there for comparison, as far as others' manuals say
// what they do.
struct Space {
  std::string_view name;
  std::string_view meaning;    // one sentence
  bool two_dimensions = true;  // "tp2d"
  bool ring = true;
  bool ulysses = true;
  bool ulysses_beside = true;  // tensor and pipeline parallelism
  bool expert_width = true;    // "etp"
  bool spread_experts = true;  // "ep_tp"
  bool interleaved = true;     // several stages a device
  bool zero_bubble = true;
  bool uneven = true;  // stages of unequal layers, balanced (balance.h)
  bool offload = true;
  std::int32_t most_zero = 3;           // without a pipeline
  std::int32_t most_zero_in_pipes = 3;  // with one
  std::vector<Constraint> only;         // what somebody wants besides

  // Whether tensors may leave HBM, by its constraints as well.
  bool may_offload() const;
};
const std::vector<Space>& spaces();
// Throws kUsage when there is none of this name.
const Space& space_named(std::string_view name);

// The sizes of axes that can go together: their product is the job's devices, replicas divide the batch,
// stages have a layer each, and constraints of sizes are met. Strategies that are nothing but these sizes, in
// one order of the axes.
std::vector<Strategy> shapes_of(const Job& job, const Space& space);

// Calls `visit` with every strategy of one of these shapes: micro-batches divide the batch, stages are even,
// there is no policy of memory, and the space's constraints may not be met; balance.h has others, orders_of()
// the other orders. Whether tensors divide is for the layouts to say. Strategies that differ in the last
// three of samples, recompute, zero, schedule and chunks follow one another.
void each_of_shape(const Job& job, const Space& space, const Strategy& shape,
                   const std::function<void(const Strategy&)>& visit);

// Those of all shapes.
void each_strategy(const Job& job, const Space& space, const std::function<void(const Strategy&)>& visit);

// Whether the space has all that this strategy of a wider one has; without its constraints.
bool can_express(const Space& space, const Strategy& strategy);

// Whether some order of these axes is a strategy of the space, constraints included, under a policy of memory
// or none.
bool has(const Space& space, const Job& job, const Strategy& strategy);

// The same strategy with its axes in every order.
std::vector<Strategy> orders_of(const Strategy& strategy);

}  // namespace hyperrun
