// What a pass of an encoder is told: the vectors of its items, patches of pictures or frames of sounds.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// Of the whole pass, or of those that one replica of the devices takes, which begin with the pass' item
// `first`; items that are not there, behind the last, count as zeros.
struct InputVectors {
  std::int64_t items = 0, tokens = 0, width = 0, first = 0;
  std::vector<float> values;  // [items, tokens, width], row-major
  bool operator==(const InputVectors&) const = default;
};

}  // namespace hyperrun
