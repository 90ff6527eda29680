// The effort of trying a job, estimated before it is compiled.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/ir/job.h"
#include "runtime/ir/program.h"

namespace hyperrun {

// Unit: instructions compiled without offloading and simulated, some 250'000 a second. It is not seconds, so
// that advice does not depend on how busy the host is.
using Effort = std::int64_t;

// Some 14 seconds. It is enough for all trials of a small job and for a few compilations of a very large one.
inline constexpr Effort kMostEffort = 3'500'000;

// The estimate may be far off, so there is a limit on the clock as well. What is being tried then is given
// up.
inline constexpr std::chrono::milliseconds kMostTime{10'000};

// The limits of a search for what would help. An Effort alone is such limits, too.
struct SearchLimits {
  SearchLimits(Effort most = kMostEffort, std::chrono::milliseconds longest = kMostTime)
      : effort(most), time(longest) {}

  Effort effort;
  std::chrono::milliseconds time;
};

// Estimated effort of compiling `job`, if its Programs are as long for each micro-batch as those of `plan`,
// which is the plan of `like`.
Effort effort_like(const Job& job, const Plan& plan, const Job& like);

}  // namespace hyperrun
