#include "runtime/model/text/corpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/model/text/corpus_file.h"

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

// Paths in the order of their parts, so that a folder's files stay together.
bool path_less(const fs::path& a, const fs::path& b) {
  auto x = a.begin(), y = b.begin();
  for (; x != a.end() && y != b.end(); ++x, ++y)
    if (*x != *y) return natural_less(x->string(), y->string());
  return x == a.end() && y != b.end();
}

// Files that are left out, counted by the reason.
class LeftOut {
 public:
  void add(std::string reason) { ++counts_[std::move(reason)]; }
  std::string text() const {
    std::vector<std::string> parts;
    for (const auto& [reason, count] : counts_) parts.push_back(fmt::format("{} {}", count, reason));
    return joined(parts);
  }

 private:
  std::map<std::string, std::int64_t> counts_;
};

// The files of a folder and of the folders in it. Links to folders are followed, each folder once.
class Walk {
 public:
  explicit Walk(LeftOut& left_out) : left_out_(left_out) {}

  std::vector<fs::path> files(const fs::path& folder) {
    enter(folder);
    std::ranges::sort(files_, path_less);
    return std::move(files_);
  }

 private:
  void enter(const fs::path& folder) try {
    if (!entered_.insert(fs::canonical(folder)).second) return;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().starts_with('.'))
        left_out_.add("hidden");
      else if (entry.is_directory())
        enter(entry.path());
      else if (entry.is_regular_file() && corpus_format(entry.path()))
        files_.push_back(entry.path());
      else
        left_out_.add(entry.path().extension().empty() ? "without an extension"
                                                       : entry.path().extension().string());
    }
  } catch (const fs::filesystem_error& e) {
    throw Error(Code::kBadCorpus, "cannot read the directory: " + e.code().message()).at(folder.string());
  }

  LeftOut& left_out_;
  std::vector<fs::path> files_;
  std::set<fs::path> entered_;
};

// Gathers the documents of files, and what there is to tell about them.
class Gathering {
 public:
  explicit Gathering(std::string_view between) : between_(between) {}

  void add(const fs::path& file, CorpusFormat format) {
    CorpusDocuments documents = read_corpus_file(file, format);
    for (const std::string& text : documents.texts) {
      if (!corpus_.text.empty()) corpus_.text += between_;
      corpus_.text += text;
    }
    if (format != CorpusFormat::kText) {
      objects_ += std::ssize(documents.texts);
      fields_.insert(documents.field.empty() ? "strings" : "field \"" + documents.field + "\"");
    }
    empty_ += documents.empty;
    marks_ += documents.mark ? 1 : 0;
    lines_ += documents.lines ? 1 : 0;
  }

  Corpus take(const LeftOut& left_out) {
    const auto tell = [&](std::string text) { corpus_.notes.push_back(std::move(text)); };
    if (!fields_.empty()) tell(fmt::format("{} documents from JSON ({})", objects_, joined(fields_)));
    if (empty_ > 0) tell(fmt::format("left out: {} documents without text", empty_));
    if (lines_ > 0)
      tell(fmt::format("{} with line ends of Windows, which are read as those of Unix", files(lines_)));
    if (marks_ > 0) tell(fmt::format("{} with a byte order mark, which is left out", files(marks_)));
    if (const std::string text = left_out.text(); !text.empty()) tell("left out: files " + text);
    return std::move(corpus_);
  }

 private:
  static std::string files(std::int64_t n) { return fmt::format("{} file{}", n, n == 1 ? "" : "s"); }

  std::string_view between_;
  Corpus corpus_;
  std::set<std::string> fields_;
  std::int64_t objects_ = 0, empty_ = 0, marks_ = 0, lines_ = 0;
};

Corpus read_directory(const fs::path& directory, std::string_view between) {
  LeftOut left_out;
  const std::vector<fs::path> files = Walk(left_out).files(directory);
  if (files.empty())
    throw Error(Code::kBadCorpus, left_out.text().empty()
                                      ? "the directory has no text"
                                      : "the directory has no text, but files " + left_out.text())
        .at(directory.string())
        .legal("files .txt, .jsonl or .json, also with .gz, in it or in folders of it");
  Gathering gathering(between);
  for (const fs::path& file : files)
    if (const std::string reason = reason_to_leave_out(file); !reason.empty())
      left_out.add(reason);
    else
      gathering.add(file, *corpus_format(file));
  return gathering.take(left_out);
}

}  // namespace

Corpus read_corpus(const fs::path& path, std::string_view between) {
  std::error_code error;
  Corpus corpus;
  if (fs::is_directory(path, error)) {
    corpus = read_directory(path, between);
  } else {
    Gathering gathering(between);
    gathering.add(path, corpus_format(path).value_or(CorpusFormat::kText));
    corpus = gathering.take({});
  }
  if (corpus.text.empty()) throw Error(Code::kBadCorpus, "the corpus is empty").at(path.string());
  return corpus;
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
