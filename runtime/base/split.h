#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace hyperrun {

// The parts of `text` between separators, as views into it. Parts may be empty; an empty text has one part.
inline std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace hyperrun
