// A made-up text, where there is no corpus.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// Tokens below `vocab` with a structure that can be learnt: mostly a fixed successor, sometimes another.
// Always the same.
std::vector<std::int32_t> synthetic_tokens(std::int32_t vocab, std::size_t count);

}  // namespace hyperrun
