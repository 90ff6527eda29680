// What a pass over given texts is told: to score their tokens, to train on them, or to train a policy on what
// it has written.
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
  // To train on the texts: what the position's term has for its share of the loss, which is the sum of
  // -weight * logp over all that are counted.
  std::vector<float> weight;
  // To train a policy as well, else empty (docs/policy.md): the position's advantage, and the log
  // probabilities of the target under the policy that has drawn it and under the reference.
  std::vector<float> advantage, behaviour, reference;
  // Of each encoder whose features the texts hold: which row of its port (item * tokens of an item + token)
  // stands at the position; -1: none.
  std::vector<std::vector<std::int32_t>> features;
  std::int64_t sequences() const { return static_cast<std::int64_t>(ids.size()) / tokens; }
  bool operator==(const Samples&) const = default;
};

}  // namespace hyperrun
