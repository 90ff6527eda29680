// Lists in texts: "dp, tp, pp".
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace hyperrun {

// The elements of `range` as fmt::format writes them, with `separator` between every two.
template <class Range>
std::string joined(const Range& range, std::string_view separator = ", ") {
  std::string text;
  bool first = true;
  for (const auto& element : range) {
    if (!first) text += separator;
    text += fmt::format("{}", element);
    first = false;
  }
  return text;
}

}  // namespace hyperrun
