#include "runtime/model/text/corpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"

namespace hyperrun {

namespace fs = std::filesystem;

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Cuts the number at the front of `text` off; its leading zeros do not count.
std::string_view take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const std::string_view x = take_number(a), y = take_number(b);
      if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    } else if (a[0] != b[0]) {
      return a[0] < b[0];
    } else {
      a.remove_prefix(1), b.remove_prefix(1);
    }
  }
  if (a.empty() && b.empty()) return whole_a < whole_b;  // they differ in leading zeros only
  return a.empty();
}

std::vector<fs::path> text_files(const fs::path& directory) try {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    if (entry.is_regular_file() && entry.path().extension() == ".txt") files.push_back(entry.path());
  std::ranges::sort(files, natural_less, [](const fs::path& p) { return p.filename().string(); });
  return files;
} catch (const fs::filesystem_error& e) {
  throw Error(Code::kBadCorpus, "cannot read the directory: " + e.code().message()).at(directory.string());
}

std::string read_text(const fs::path& path) {
  std::string text = read_file(path, Code::kBadCorpus);
  const std::size_t invalid = find_invalid(text);
  if (invalid < text.size())
    throw Error(Code::kBadCorpus,
                fmt::format("byte {} begins no character: this is no text in UTF-8", invalid))
        .at(path.string())
        .fix("convert it (iconv -t UTF-8), or give another file");
  return text;
}

std::string read_directory(const fs::path& directory, std::string_view between) {
  const std::vector<fs::path> files = text_files(directory);
  if (files.empty()) throw Error(Code::kBadCorpus, "the directory has no .txt file").at(directory.string());
  std::string text;
  for (const fs::path& file : files) {
    if (!text.empty()) text += between;
    text += read_text(file);
  }
  return text;
}

}  // namespace

std::string read_corpus(const fs::path& path, std::string_view between) {
  std::error_code error;
  const bool is_directory = fs::is_directory(path, error);
  std::string text = is_directory ? read_directory(path, between) : read_text(path);
  if (text.empty()) throw Error(Code::kBadCorpus, "the corpus is empty").at(path.string());
  return text;
}

void require_sample(std::span<const std::int32_t> tokens, std::int32_t sequence, const std::string& place) {
  const auto needed = static_cast<std::size_t>(sequence) + 1;
  if (tokens.size() >= needed) return;
  throw Error(Code::kBadCorpus, fmt::format("too short: it has {} tokens, one sample of sequence {} needs {}",
                                            tokens.size(), sequence, needed))
      .at(place)
      .fix("take a longer text or a smaller model.sequence");
}

}  // namespace hyperrun
