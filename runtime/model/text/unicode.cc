#include "runtime/model/text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "runtime/model/text/unicode_ranges.h"

namespace hyperrun {
namespace {

bool contains(std::span<const CodePointRange> ranges, char32_t code) {
  const auto it = std::ranges::upper_bound(ranges, code, {}, &CodePointRange::first);
  return it != ranges.begin() && code <= std::prev(it)->last;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

CharClass look_up(char32_t code) {
  if (contains(kLetterRanges, code)) return CharClass::kLetter;
  if (is_space(code)) return CharClass::kSpace;
  if (contains(kNumberRanges, code)) return CharClass::kNumber;
  return CharClass::kOther;
}

}  // namespace

CharClass class_of(char32_t code) {
  static const auto ascii = [] {
    std::array<CharClass, 128> table{};
    for (char32_t c = 0; c < table.size(); ++c) table[c] = look_up(c);
    return table;
  }();
  return code < ascii.size() ? ascii[code] : look_up(code);
}

}  // namespace hyperrun
