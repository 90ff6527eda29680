#include "runtime/model/text/pretokenize.h"

#include <array>

#include "runtime/model/text/unicode.h"

namespace hyperrun {
namespace {

// End of the run of `kind` from `at` on; `last` is where its last character begins.
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

std::size_t contraction_length(std::string_view text) {
  for (const std::string_view form : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(form)) return form.size();
  return 0;
}

}  // namespace

std::size_t word_length(std::string_view text, std::size_t at) {
  if (const std::size_t length = contraction_length(text.substr(at))) return length;

  const bool blank = text[at] == ' ' && at + 1 < text.size();
  const std::size_t first = blank ? at + 1 : at;
  if (const CharClass kind = class_at(text, first); kind != CharClass::kSpace)
    return run_of(kind, text, first).end - at;

  const Run space = run_of(CharClass::kSpace, text, at);
  const bool leaves_last = space.end < text.size() && space.last > at;
  return (leaves_last ? space.last : space.end) - at;
}

}  // namespace hyperrun
