#pragma once

#include <array>
#include <charconv>

namespace hyperrun {

// To four digits, which is more than a fitted number is worth.
inline double rounded(double v) {
  std::array<char, 32> text{};
  const char* end =
      std::to_chars(text.data(), text.data() + text.size(), v, std::chars_format::scientific, 3).ptr;
  std::from_chars(text.data(), end, v);  // the double that is printed with as few
  return v;
}

}  // namespace hyperrun
