// The input of an encoder's pass: the vectors of its items, which are patches of pictures or frames of
// sounds.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// The items of a whole pass, or those of one replica, which begin with the pass's item `first`. Items behind
// the last are zeros.
struct InputVectors {
  std::int64_t items = 0, tokens = 0, width = 0, first = 0;
  std::vector<float> values;  // [items, tokens, width], row-major
  bool operator==(const InputVectors&) const = default;
};

}  // namespace hyperrun
