// Guesses which of several names a misspelt one stands for.
#pragma once

#include <string_view>
#include <vector>

namespace hyperrun {

// The least number of insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance, or "" when none is near.
std::string_view most_alike(std::string_view written, const std::vector<std::string_view>& candidates);

}  // namespace hyperrun
