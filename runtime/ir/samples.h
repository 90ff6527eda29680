// What a pass over given texts is told: to score their tokens, or to train a policy on what it has written.
//
// A position holds the token `ids` and is to predict `targets`; a target of -1 is not counted (of a prompt,
// and behind the end of the text), whatever else is said of its position.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

struct Samples {
  std::int64_t tokens = 0;                 // of a sequence
  std::vector<std::int32_t> ids, targets;  // [sequences, tokens], row-major, as all that follow
  // To train a policy, else empty (docs/policy.md): what the position's term has for its share of the loss,
  // its advantage, and the log probabilities of the target under the policy that has drawn it and under the
  // reference.
  std::vector<float> weight, advantage, behaviour, reference;
  std::int64_t sequences() const { return static_cast<std::int64_t>(ids.size()) / tokens; }
  bool operator==(const Samples&) const = default;
};

}  // namespace hyperrun
