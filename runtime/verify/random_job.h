// Jobs from a seed: layouts that are legal, of models that are small.
#pragma once

#include <cstdint>

#include "runtime/ir/job.h"

namespace hyperrun {

// A mesh of 2, 4, 8 or 16 devices over axes of the presets and of a pipeline, in any order, under some of
// those presets that have their axes, and under rules as a user might write them for any tensor of a step.
// The model and the training are those of `base`, or small ones when it is null: sizes of all kinds, untied
// and tied, whole and in micro-batches, kept and computed again, in float32 and in bfloat16 (where tokens
// choose experts, of many tokens). It is legal, with room for any layout; its name ends in the seed. The same
// at every call.
Job random_job(std::uint64_t seed, const Job* base);

}  // namespace hyperrun
