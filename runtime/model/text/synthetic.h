// A made-up text, for jobs without a corpus.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// Tokens below `vocab` with a structure that can be learnt: a token mostly has a fixed successor, sometimes
// another. The result is always the same.
std::vector<std::int32_t> synthetic_tokens(std::int32_t vocab, std::size_t count);

}  // namespace hyperrun
