// A point of the planner's space: how a job is spread over its devices. It is less than a Job, so that
// millions can be looked at, and becomes one where it is compiled.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/job.h"

namespace hyperrun {

// The axes of the mesh, named as the presets name them. kTensor is "tp", or "tpx" beside "tpy".
enum class PlanAxis : std::uint8_t { kPipeline, kData, kExpert, kRing, kContext, kTensorY, kTensor };
inline constexpr std::size_t kPlanAxes = 7;

enum class PlanSchedule : std::uint8_t { kGpipe, k1f1b, kInterleaved, kZeroBubble };
inline constexpr std::size_t kSchedules = 4;
enum class PlanRecompute : std::uint8_t { kNone, kSelective, kFull };
// What the tensor axis does with experts: each device along it has all that its place on the expert axis has
// (for its own tokens), a part of the width of each ("etp"), or some of them whole ("ep_tp").
enum class PlanExperts : std::uint8_t { kRepeated, kWidth, kSpread };
enum class PlanMemory : std::uint8_t { kNone, kHyperOffload };

struct Strategy {
  std::array<std::int32_t, kPlanAxes> sizes{1, 1, 1, 1, 1, 1, 1};  // by PlanAxis; product: the devices
  std::array<PlanAxis, kPlanAxes> order{PlanAxis::kPipeline, PlanAxis::kData,    PlanAxis::kExpert,
                                        PlanAxis::kRing,     PlanAxis::kContext, PlanAxis::kTensorY,
                                        PlanAxis::kTensor};  // major (slowest changing rank) first
  PlanExperts experts = PlanExperts::kRepeated;
  std::int32_t zero = 0;     // 0 to 3, over all axes that split tokens: zero_devices()
  std::int32_t samples = 1;  // of one replica's micro-batch
  std::int32_t chunks = 1;   // stages of a device
  // Layers that the first and the last stage have fewer than an even share would be, as they have other work
  // besides; less than 0: more.
  std::int32_t lead = 0, tail = 0;
  PlanSchedule schedule = PlanSchedule::k1f1b;
  PlanRecompute recompute = PlanRecompute::kNone;
  // Layers of each device, its first ones, that recompute what next_after() says.
  std::int32_t deeper = 0;
  PlanMemory memory = PlanMemory::kNone;

  std::int32_t operator[](PlanAxis a) const { return sizes[static_cast<std::size_t>(a)]; }
  std::int32_t& operator[](PlanAxis a) { return sizes[static_cast<std::size_t>(a)]; }
  // That have the same weights, but for experts.
  std::int32_t zero_devices() const {
    return replicas() * (*this)[PlanAxis::kRing] * (*this)[PlanAxis::kContext];
  }
  std::int32_t replicas() const { return (*this)[PlanAxis::kData] * (*this)[PlanAxis::kExpert]; }
  std::int64_t devices() const;
  bool operator==(const Strategy&) const = default;
};

// Nothing after kFull.
std::optional<PlanRecompute> next_after(PlanRecompute recompute);

// Of a step with so many sequences; 0 when they do not divide.
std::int32_t micro_batches(const Strategy& strategy, std::int32_t batch);

// Layers of stage v, of so many on each device; less than 1: they cannot be spread so.
std::int32_t layers_of_stage(const Strategy& strategy, std::int32_t layers, std::int32_t v);

// Of the stage that has least.
std::int32_t least_layers(const Strategy& strategy, std::int32_t layers);

// Of the device that has most.
std::int32_t most_layers(const Strategy& strategy, std::int32_t layers);

// In some layers of a device, but not in all.
bool may_recompute_more(const Strategy& strategy, std::int32_t layers);

// Of all stages of a device on the pipeline's axis.
std::int32_t layers_of_device(const Strategy& strategy, std::int32_t layers, std::int32_t device);

// The axes that have more than one device, in their order.
std::vector<MeshAxis> mesh_of(const Strategy& strategy);
// As the mesh calls it.
std::string_view axis_name(const Strategy& strategy, PlanAxis axis);

// `base` with another ParallelSpec, micro-batches, recomputation and policy of memory: as a user would write
// it. Nothing of the base's own parallelism stays, rules neither.
Job job_of(const Job& base, const Strategy& strategy);

// The strategy that job_of() would make this job's parallelism of; nothing where none does: it has rules of
// its own, say.
std::optional<Strategy> strategy_of(const Job& job);

std::string_view name(PlanSchedule schedule);    // as jobs have it: "1f1b"
std::string_view name(PlanRecompute recompute);  // "none", "selective", "full"
std::string_view name(PlanExperts experts);      // "repeated", or the preset

// "pp 8 x dp 16 x tpx 8 x tpy 2, zero1, 1f1b, 2 sequences a micro-batch, recompute full"
std::string words(const Strategy& strategy);

}  // namespace hyperrun
