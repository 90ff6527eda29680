// The input of a pass over given texts: to score their tokens, to train on them, or to train a policy on its
// own completions.
//
// A position has a token in `ids` and predicts its entry of `targets`. A target of -1 is not counted,
// whatever the other arrays say; these are positions of the prompt and behind the end of the text.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

struct Samples {
  std::int64_t tokens = 0;                 // tokens of a sequence
  std::vector<std::int32_t> ids, targets;  // [sequences, tokens], row-major, like all that follow
  // For training: the weight of each position in the loss, which is the sum of -weight * logp over all
  // counted targets.
  std::vector<float> weight;
  // For training a policy, else empty (docs/policy.md): the position's advantage, and the log probabilities
  // of the target under the policy that drew it and under the reference.
  std::vector<float> advantage, behaviour, reference;
  // For each encoder whose features are in the texts: the row of its port (item * tokens of an item + token)
  // that stands at the position; -1: none.
  std::vector<std::vector<std::int32_t>> features;
  std::int64_t sequences() const { return static_cast<std::int64_t>(ids.size()) / tokens; }
  bool operator==(const Samples&) const = default;
};

}  // namespace hyperrun
