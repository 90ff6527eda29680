// Made-up samples for tests that score texts or train a policy.
#pragma once

#include <cstdint>

#include "runtime/ir/job.h"
#include "runtime/ir/samples.h"

namespace hyperrun::testing {

// The samples of a step, always the same: as many sequences as the job's step has, each with a prompt, an
// answer and padding of different lengths. Each sequence has its own advantage, of either sign. Behaviour and
// reference are near the log probability that a fresh model gives every token, so that ratios are below,
// within and above the usual bounds. Weights add up to 1.
Samples made_up_samples(const Job& job, std::int64_t step);

// The same samples for scoring, with tokens and targets alone.
Samples to_be_scored(const Samples& samples);

}  // namespace hyperrun::testing
