// How frameworks spread a model over devices, and the same as the mesh, presets and pipeline of a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/frameworks/reading.h"
#include "runtime/ir/job.h"

namespace hyperrun::frameworks {

enum class ExpertLayout : std::uint8_t { kRepeated, kWidth, kSpread };

struct Parallelism {
  // Sizes of the axes. `data` is without those of `replicas` and `expert`, which split the batch as well.
  std::int32_t pipeline = 1, replicas = 1, data = 1, expert = 1, ring = 1, ulysses = 1, tensor = 1;
  bool sequence = false;  // activations between tensor-parallel parts are split as well
  ExpertLayout experts = ExpertLayout::kRepeated;
  bool experts_over_ring = false, experts_over_ulysses = false;  // experts are split over these axes, too
  std::int32_t zero = 0;
  bool pipeline_is_inner = false;  // stages are nearer to each other than replicas
  std::string schedule = "1f1b";
  std::int32_t chunks = 1;
  std::vector<std::int32_t> stages;  // layers of each; empty: spread evenly

  std::int32_t batch_parts() const { return replicas * data * expert; }
  std::int64_t devices() const { return std::int64_t{pipeline} * batch_parts() * ring * ulysses * tensor; }
};

// The mesh, presets, rules and pipeline. zero is left out where no axis splits tokens.
ParallelSpec parallel_of(const Parallelism& layout);

// The inverse. nullopt: the job has rules, or an axis of its own; `why` then says so.
std::optional<Parallelism> parallelism_of(const ParallelSpec& parallel, std::int32_t layers,
                                          std::string& why);

// Layers of each stage if they are spread evenly, the first stages having one more.
std::vector<std::int32_t> even_layers(std::int32_t stages, std::int32_t layers);

// The layers of each stage, whether they are spread evenly or not.
std::vector<std::int32_t> layers_of(const Parallelism& layout, std::int32_t layers);

// The placement of experts if `experts` devices have different ones, in the manner of Megatron-LM and
// torchtitan: the devices are neighbours, along the tensor axis first (if experts are not split themselves),
// then along the context where replicas are too few, then among replicas. `replicas` counts all of them;
// `context_first`: the context comes before replicas in any case. Throws kBadValue with the places of the
// settings.
void place_experts(Parallelism& layout, std::int32_t replicas, std::int32_t experts,
                   std::int32_t expert_tensor, Reading& reading, bool context_first = false);

// The inverse: how many devices have different experts, and over how many each expert is split. nullopt: the
// layout cannot be said so.
struct ExpertDegrees {
  std::int32_t experts = 1, tensor = 1;
};
std::optional<ExpertDegrees> expert_degrees(const Parallelism& layout);

}  // namespace hyperrun::frameworks
