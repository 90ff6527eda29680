// A small world in which plans can be executed for comparison with their predictions. Plans run to scale on a
// host (runtime/ir/shrink.h): each instruction takes as long as on the job's machine.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/job.h"
#include "runtime/plan/search.h"

namespace hyperrun {

// The first `devices` devices of the machine and a model of equal structure and widths, with fewer layers.
// The batch is scaled down, to one sequence a device at most. HBM and pool are scaled by the size of weights,
// gradients and optimizer state. Throws kUsage if the job has fewer devices, kBadValue if its machine has no
// paced clock.
Job proof_world(const Job& job, std::int32_t devices);

// Divisors by which the world's model may shrink for execution, the largest first. Not every layout divides
// the result.
std::vector<ShrinkSpec> proof_shrinks(const Job& world);

// At most `count` simulated plans: the fastest, and slower ones at about equal ratios. Neighbours differ by 2
// % at least, so that a clock accurate to 1 % tells them apart.
std::vector<SimulatedCandidate> spread_out(const std::vector<SimulatedCandidate>& leaders, std::size_t count);

}  // namespace hyperrun
