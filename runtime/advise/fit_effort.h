// What it takes to try a job, told before it is compiled.
#pragma once

#include <cstdint>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// In instructions that are compiled with nothing beyond HBM and simulated: some 250'000 a second. A number of
// them, and not seconds, so that what is told does not hang on how busy the host is.
using Effort = std::int64_t;

// Some 14 seconds. A small job may have all tried with it; of the largest it is a few compilations.
inline constexpr Effort kMostEffort = 3'500'000;

// Of compiling `job`, if its Programs are like those of `plan`, which is that of `like`: as long for each
// micro-batch.
Effort effort_like(const Job& job, const Plan& plan, const Job& like);

}  // namespace hyperrun
