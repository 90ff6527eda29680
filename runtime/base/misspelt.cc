#include "runtime/base/misspelt.h"

#include <algorithm>

namespace hyperrun {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string_view most_alike(std::string_view written, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kLongestName = 64;  // longer words are not taken for misspelt names
  if (written.size() > kLongestName) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, written.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    // No distance is below the difference of the lengths, which rules out most names at once.
    const auto [shorter, longer] = std::minmax({written.size(), candidate.size()});
    if (longer - shorter >= best_distance) continue;
    std::size_t distance = edit_distance(written, candidate);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

}  // namespace hyperrun
