#include "runtime/frameworks/shell/sources.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace hyperrun::shell {
namespace {

constexpr std::size_t kMostBytes = 32 << 20;

// A control character that no script has; a NUL and its neighbours are in every binary file.
bool is_binary(char c) {
  return (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' &&
          c != '\x1b') ||
         c == '\x7f';
}

}  // namespace

Text Sources::add(std::string name, std::string_view content) {
  if (content.size() > kMostBytes || next_ > kMostBytes)
    throw Error(Code::kSyntax, fmt::format("{} bytes are too many for a script", content.size()))
        .at(name)
        .legal(fmt::format("up to {} bytes", kMostBytes))
        .fix("name the launch script itself");
  File file{std::move(name), next_, {next_}};
  Text text;
  text.chars.reserve(content.size());
  text.places.reserve(content.size());
  for (std::size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    const auto place = next_ + static_cast<std::uint32_t>(i);
    if (is_binary(c))
      throw Error(Code::kSyntax, fmt::format("a binary file: byte {} is a control character, of the code {}",
                                             i + 1, static_cast<int>(c)))
          .at(file.name)
          .legal("a shell script, or a configuration as text")
          .fix("name the launch script or the configuration");
    if (c == '\n') file.lines.push_back(place + 1);
    // A file from Windows has a carriage return at each line's end, which is no part of any value.
    if (c == '\r' && (i + 1 == content.size() || content[i + 1] == '\n')) continue;
    text.add(c, place);
  }
  next_ += static_cast<std::uint32_t>(content.size()) + 1;
  files_.push_back(std::move(file));
  return text;
}

std::string Sources::place(std::uint32_t offset) const {
  const auto file = std::upper_bound(files_.begin(), files_.end(), offset,
                                     [](std::uint32_t o, const File& f) { return o < f.first; });
  if (file == files_.begin()) return "";
  const File& f = *(file - 1);
  const auto line = std::upper_bound(f.lines.begin(), f.lines.end(), offset) - f.lines.begin();
  return fmt::format("{}:{}:{}", f.name, line, offset - f.lines[static_cast<std::size_t>(line) - 1] + 1);
}

std::string Sources::mark(std::string_view what) {
  std::string text(1, kMarkBegin);
  for (const char c : what)
    if (c != kMarkBegin && c != kMarkEnd) text += c == '\n' || c == '\t' ? ' ' : c;
  return text + kMarkEnd;
}

bool is_mark(std::string_view text) {
  bool inside = false;
  for (const char c : text) {
    if (c == kMarkBegin)
      inside = true;
    else if (c == kMarkEnd)
      inside = false;
    else if (!inside)
      return false;
  }
  return !text.empty();
}

std::string without_marks(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != kMarkBegin && c != kMarkEnd) plain += c;
  return plain;
}

std::vector<std::string> marks_of(std::string_view text) {
  std::vector<std::string> list;
  bool inside = false;
  for (const char c : text) {
    if (c == kMarkBegin)
      inside = true, list.emplace_back();
    else if (c == kMarkEnd)
      inside = false;
    else if (inside)
      list.back() += c;
  }
  return list;
}

}  // namespace hyperrun::shell
