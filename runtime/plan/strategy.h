// A Strategy is one point of the planner's search space: how a job is spread over its devices. It has only
// what the planner varies, so that millions can be examined. job_of() turns it into a Job.
//
//   pp 2 x dp 4 x tp 8, zero1, 1f1b: 64 devices, two stages, four replicas, tensors split over 8 devices
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
// How experts use the tensor axis: each device repeats all experts of its place on the expert axis and works
// on its own tokens; it has a part of the width of each ("etp"); or it has some of them whole ("ep_tp").
enum class PlanExperts : std::uint8_t { kRepeated, kWidth, kSpread };
enum class PlanMemory : std::uint8_t { kNone, kHyperOffload };

struct Strategy {
  // Sizes by PlanAxis; their product is the number of devices.
  std::array<std::int32_t, kPlanAxes> sizes{1, 1, 1, 1, 1, 1, 1};
  std::array<PlanAxis, kPlanAxes> order{PlanAxis::kPipeline, PlanAxis::kData,    PlanAxis::kExpert,
                                        PlanAxis::kRing,     PlanAxis::kContext, PlanAxis::kTensorY,
                                        PlanAxis::kTensor};  // major (slowest changing rank) first
  PlanExperts experts = PlanExperts::kRepeated;
  std::int32_t zero = 0;     // ZeRO 0 to 3, over zero_devices()
  std::int32_t samples = 1;  // sequences in a micro-batch of one replica
  std::int32_t chunks = 1;   // chunks of a device
  // Layers that the first and the last stage have fewer than an even share, because the embedding and the
  // head cost time as well. A negative number means more layers.
  std::int32_t first_stage_shortfall = 0, last_stage_shortfall = 0;
  PlanSchedule schedule = PlanSchedule::k1f1b;
  PlanRecompute recompute = PlanRecompute::kNone;
  // The first layers of each device, so many, recompute by stronger_recompute() instead of `recompute`.
  std::int32_t extra_recompute_layers = 0;
  PlanMemory memory = PlanMemory::kNone;

  std::int32_t operator[](PlanAxis a) const { return sizes[static_cast<std::size_t>(a)]; }
  std::int32_t& operator[](PlanAxis a) { return sizes[static_cast<std::size_t>(a)]; }
  // Devices that hold the same weights, experts apart. ZeRO splits state over them.
  std::int32_t zero_devices() const {
    return replicas() * (*this)[PlanAxis::kRing] * (*this)[PlanAxis::kContext];
  }
  std::int32_t replicas() const { return (*this)[PlanAxis::kData] * (*this)[PlanAxis::kExpert]; }
  std::int64_t devices() const;
  bool operator==(const Strategy&) const = default;
};

// nullopt after kFull.
std::optional<PlanRecompute> stronger_recompute(PlanRecompute recompute);

// Micro-batches of a step of `batch` sequences; 0 if they do not divide it.
std::int32_t micro_batches(const Strategy& strategy, std::int32_t batch);

// Layers of stage v; less than 1 if the layers cannot be distributed like this.
std::int32_t layers_of_stage(const Strategy& strategy, std::int32_t layers, std::int32_t v);

// Layers of the stage with the fewest.
std::int32_t least_layers(const Strategy& strategy, std::int32_t layers);

// Layers of the device with the most.
std::int32_t most_layers(const Strategy& strategy, std::int32_t layers);

// True if some layers of a device, but not all, can recompute more.
bool may_recompute_extra(const Strategy& strategy, std::int32_t layers);

// Layers of all chunks of a device, which is counted along the pipeline axis.
std::int32_t layers_of_device(const Strategy& strategy, std::int32_t layers, std::int32_t device);

// Axes of more than one device, in their order.
std::vector<MeshAxis> mesh_of(const Strategy& strategy);
// Name of the axis in the mesh.
std::string_view axis_name(const Strategy& strategy, PlanAxis axis);

// `base` with the parallelism, micro-batches, recomputation and memory policy of the strategy, as a user
// would write it. The parallelism of `base` is dropped, its rules included.
Job job_of(const Job& base, const Strategy& strategy);

// Inverse of job_of(). nullopt if no strategy gives this job, for example because it has rules.
std::optional<Strategy> strategy_of(const Job& job);

std::string_view name(PlanSchedule schedule);    // as in a job: "1f1b"
std::string_view name(PlanRecompute recompute);  // "none", "selective", "full"
std::string_view name(PlanExperts experts);      // "repeated", or the name of the preset

// One line: "pp 8 x dp 16 x tpx 8 x tpy 2, zero1, 1f1b, 2 sequences a micro-batch, recompute full".
std::string describe(const Strategy& strategy);

}  // namespace hyperrun
