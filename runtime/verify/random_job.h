// Draws jobs from a seed: legal layouts of small models.
#pragma once

#include <cstdint>

#include "runtime/ir/job.h"

namespace hyperrun {

// A random job, the same for a seed at every call. The mesh has 2, 4, 8 or 16 devices over axes of presets
// and of a pipeline, in any order. Some of the presets that have their axes are used, and rules that a user
// might write for any tensor of a step. Model and training are those of `base`. If it is null they are small
// and random: sizes of all kinds, tied and untied heads, micro-batches, recomputation, float32 and bfloat16
// (with experts only for many tokens). The job is legal, with room for any layout. Its name ends in the seed.
Job random_job(std::uint64_t seed, const Job* base);

}  // namespace hyperrun
