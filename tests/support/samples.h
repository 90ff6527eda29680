// Made-up samples for what scores texts or trains a policy on them.
#pragma once

#include <cstdint>

#include "runtime/ir/job.h"
#include "runtime/ir/samples.h"

namespace hyperrun::testing {

// As many sequences as the job's step has, each of a prompt, an answer and padding, of other lengths; always
// the same of a step. Advantages are a sequence's own, of either sign; behaviour and reference lie about the
// log probability that a fresh model gives every token, so that ratios lie below, within and above the usual
// bounds; weights add up to 1.
Samples made_up_samples(const Job& job, std::int64_t step);

// The same to be scored: tokens and targets alone.
Samples to_be_scored(const Samples& samples);

}  // namespace hyperrun::testing
