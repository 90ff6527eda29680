// Texts whose characters know where they were written, so that a flag that came by way of three variables is
// still told with its own line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun::shell {

// A run of characters, each with its place: an offset that Sources turns into a line and a column.
struct Text {
  std::string chars;
  std::vector<std::uint32_t> places;

  bool empty() const { return chars.empty(); }
  std::size_t size() const { return chars.size(); }
  void add(char c, std::uint32_t place) { chars.push_back(c), places.push_back(place); }
  void add(const Text& text) {
    chars += text.chars;
    places.insert(places.end(), text.places.begin(), text.places.end());
  }
  // Characters that stand nowhere, such as the result of an expression; all have the place of the expression.
  void add(std::string_view text, std::uint32_t place) {
    chars += text;
    places.insert(places.end(), text.size(), place);
  }
  Text part(std::size_t begin, std::size_t end) const {
    return {chars.substr(begin, end - begin),
            {places.begin() + static_cast<std::ptrdiff_t>(begin),
             places.begin() + static_cast<std::ptrdiff_t>(end)}};
  }
};

// The files that a script consists of. Places count on from one file to the next.
class Sources {
 public:
  // Adds a file and returns its text. Throws kBadValue if the files together are too long to be a script, and
  // kSyntax if the file is binary.
  Text add(std::string name, std::string_view content);

  // "FILE:LINE:COLUMN"; lines and columns count from 1.
  std::string place(std::uint32_t offset) const;

  // Something that only a run would know, such as "$3" or "$(hostname)". It stands in texts as a mark.
  std::string mark(std::string_view what);

 private:
  struct File {
    std::string name;
    std::uint32_t first;
    std::vector<std::uint32_t> lines;  // offsets of the beginnings of lines
  };
  std::vector<File> files_;
  std::uint32_t next_ = 1;  // 0 is the place of what stands in no file
};

inline constexpr char kMarkBegin = '\x01', kMarkEnd = '\x02';

inline bool has_mark(std::string_view text) { return text.find(kMarkBegin) != std::string_view::npos; }
// True if the text consists of marks alone.
bool is_mark(std::string_view text);
// The text as it was written: "/data/$NAME".
std::string without_marks(std::string_view text);
// The unset variables and commands that the text's marks stand for, each as it was written: "$NAME".
std::vector<std::string> marks_of(std::string_view text);

}  // namespace hyperrun::shell
