// Turns completions into the samples that a policy is trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/samples.h"

namespace hyperrun {

// A prompt and the tokens generated for it, each with the log probability with which it was drawn.
struct Completion {
  std::vector<std::int32_t> prompt, tokens;
  std::vector<float> logp;
  bool operator==(const Completion&) const = default;
};

// Samples with a row of `length` positions for each completion. Position i holds token i of prompt and
// completion, and predicts token i + 1. Its target is -1 unless token i + 1 is part of the completion. Throws
// kInternal if a prompt with its completion is longer than length + 1.
Samples samples_of(const std::vector<Completion>& completions, std::int64_t length);

// The same samples for training: every completion has the weight 1 / (number of completions), spread evenly
// over its tokens (GRPO). `reference`: log probabilities of all positions, [completions, length], from
// scoring these samples; empty: the policy that drew the tokens is the reference.
Samples experience_of(const std::vector<Completion>& completions, std::int64_t length,
                      const std::vector<float>& advantages, const std::vector<float>& reference);

}  // namespace hyperrun
