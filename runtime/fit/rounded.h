#pragma once

#include <array>
#include <charconv>

namespace hyperrun {

// The number rounded to four digits, which is more than a fitted number is worth.
inline double rounded(double v) {
  std::array<char, 32> text{};
  const char* end =
      std::to_chars(text.data(), text.data() + text.size(), v, std::chars_format::scientific, 3).ptr;
  std::from_chars(text.data(), end, v);  // the double that prints with so few digits
  return v;
}

}  // namespace hyperrun
