// What was generated, as what is learned from.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ir/samples.h"

namespace hyperrun {

// A prompt and what it grew by: each token with the log probability with which it was drawn.
struct Completion {
  std::vector<std::int32_t> prompt, tokens;
  std::vector<float> logp;
};

// Rows of `length` positions, one a completion: position i holds token i of prompt and completion and is to
// predict token i + 1; what predicts no token of the completion has target -1. Throws kInternal where one is
// longer than length + 1.
Samples samples_of(const std::vector<Completion>& completions, std::int64_t length);

// The same, to learn from: every completion weighs 1 / (their number), each of its tokens alike (GRPO).
// `reference`: of every position, [completions, length], from scoring these samples; empty: the reference is
// who has drawn.
Samples experience_of(const std::vector<Completion>& completions, std::int64_t length,
                      const std::vector<float>& advantages, const std::vector<float>& reference);

}  // namespace hyperrun
