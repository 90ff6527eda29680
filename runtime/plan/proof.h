// A small world in which the planner's word can be tried: plans of it are executed to scale on a host
// (runtime/ir/shrink.h), so that each instruction lasts as on the job's machine.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// The first `devices` of the same machine, and a model of the same structure and widths: fewer layers, and
// no more sequences than these devices would have, nor than one each. Their HBM is to what weights, gradients
// and optimizer take of each, spread evenly, as it is in the job, and so is the pool. Throws kUsage where the
// job has fewer devices, and kBadValue where its machine has no paced clock.
Job proof_world(const Job& job, std::int32_t devices);

// By what the world's model may be divided to be executed, the most first. Not every layout divides what
// remains.
std::vector<ShrinkSpec> proof_shrinks(const Job& world);

// Of the fastest `count` at most that were simulated: the first, and others that are slower by about as much
// each, and by so much that a clock which is right to 1 % tells them apart.
std::vector<Leader> spread_out(const std::vector<Leader>& leaders, std::size_t count);

}  // namespace hyperrun
