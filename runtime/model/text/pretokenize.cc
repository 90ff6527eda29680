#include "runtime/model/text/pretokenize.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/base/utf8.h"
#include "runtime/model/text/unicode.h"

namespace hyperrun {
namespace {

// A run of characters of one class: its end, and the begin of its last character.
struct Run {
  std::size_t end, last;
};
Run run_of(CharClass kind, std::string_view text, std::size_t at) {
  Run run{at, at};
  while (run.end < text.size()) {
    const Char c = char_at(text, run.end);
    if (class_of(c.code) != kind) break;
    run.last = run.end;
    run.end += c.bytes;
  }
  return run;
}

CharClass class_at(std::string_view text, std::size_t at) { return class_of(char_at(text, at).code); }

bool is_break(char c) { return c == '\r' || c == '\n'; }

// Matches \s+(?!\S)|\s+ for the white space `space` that begins at `at`.
std::size_t space_length(const Run& space, std::string_view text, std::size_t at) {
  const bool leaves_last = space.end < text.size() && space.last > at;
  return (leaves_last ? space.last : space.end) - at;
}

constexpr std::array<std::string_view, 7> kContractions{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

std::size_t contraction_length(std::string_view text) {
  for (const std::string_view form : kContractions)
    if (text.starts_with(form)) return form.size();
  return 0;
}

// The length of a contraction in either case. Of all letters only s has a third form, the long s.
std::size_t any_case_contraction_length(std::string_view text) {
  if (text.starts_with("'\u017F")) return std::string_view("'\u017F").size();
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (const std::string_view form : kContractions)
    if (std::ranges::equal(text.substr(0, form.size()), form, same)) return form.size();
  return 0;
}

std::size_t gpt2_word_length(std::string_view text, std::size_t at) {
  if (const std::size_t length = contraction_length(text.substr(at))) return length;

  const bool blank = text[at] == ' ' && at + 1 < text.size();
  const std::size_t first = blank ? at + 1 : at;
  if (const CharClass kind = class_at(text, first); kind != CharClass::kSpace)
    return run_of(kind, text, first).end - at;
  return space_length(run_of(CharClass::kSpace, text, at), text, at);
}

// The length of the first `most` characters of a run.
std::size_t run_length(CharClass kind, std::string_view text, std::size_t at, int most) {
  std::size_t end = at;
  for (; most > 0 && end < text.size() && class_at(text, end) == kind; --most)
    end += char_at(text, end).bytes;
  return end - at;
}

// The length of white space up to its last line break; without a line break the same as for GPT-2.
std::size_t llama3_space_length(std::string_view text, std::size_t at) {
  const Run space = run_of(CharClass::kSpace, text, at);
  for (std::size_t end = space.end; end > at; --end)
    if (is_break(text[end - 1])) return end - at;
  return space_length(space, text, at);
}

std::size_t llama3_word_length(std::string_view text, std::size_t at) {
  if (const std::size_t length = any_case_contraction_length(text.substr(at))) return length;

  const Char first = char_at(text, at);
  const CharClass kind = class_of(first.code);
  if (kind == CharClass::kNumber) return run_length(kind, text, at, 3);
  const std::size_t second = at + first.bytes;
  const bool more = second < text.size();
  if (kind == CharClass::kLetter ||
      (more && !is_break(text[at]) && class_at(text, second) == CharClass::kLetter))
    return run_of(CharClass::kLetter, text, second).end - at;

  const bool blank = text[at] == ' ' && more;
  if (class_at(text, blank ? second : at) != CharClass::kOther) return llama3_space_length(text, at);
  std::size_t end = run_of(CharClass::kOther, text, blank ? second : at).end;
  while (end < text.size() && is_break(text[end])) ++end;
  return end - at;
}

std::size_t blanks_word_length(std::string_view text, std::size_t at) {
  const std::size_t word = text.find_first_not_of(' ', at);
  return std::min(text.find(' ', word), text.size()) - at;
}

}  // namespace

std::size_t word_length(Words words, std::string_view text, std::size_t at) {
  switch (words) {
    case Words::kGpt2: return gpt2_word_length(text, at);
    case Words::kLlama3: return llama3_word_length(text, at);
    case Words::kBlanks: return blanks_word_length(text, at);
    case Words::kOne: break;
  }
  return text.size() - at;
}

}  // namespace hyperrun
