// Lines of text files that users write, also with an editor of Windows.
#pragma once

#include <string_view>
#include <vector>

namespace hyperrun {

// The text without UTF-8's byte order mark, which some editors put before it.
constexpr std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.substr(text.starts_with(kMark) ? kMark.size() : 0);
}

// The lines of a text without the mark, without their ends "\n" or "\r\n". Views into `text`.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (text = without_mark(text); !text.empty();) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace hyperrun
