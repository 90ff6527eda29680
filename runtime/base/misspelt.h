// Which of several names was meant by one that is misspelt.
#pragma once

#include <string_view>
#include <vector>

namespace hyperrun {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that differs in the fewest letters, or "" when none is near.
std::string_view most_alike(std::string_view written, const std::vector<std::string_view>& candidates);

}  // namespace hyperrun
