#include "runtime/model/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/core.h>
#include <pcre2.h>

#include <array>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/oniguruma.h"

namespace hyperrun {
namespace {

// What a thread needs to match. Only one match at a time is under way in a thread, so patterns share it.
class Matcher {
 public:
  Matcher()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kStackBegin, kStackEnd, nullptr)) {
    HR_CHECK(data_ != nullptr && context_ != nullptr && stack_ != nullptr);
    pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  ~Matcher() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    pcre2_jit_stack_free(stack_);
  }

  // Compiled code has a stack of a fixed size; where that does not suffice the pattern is interpreted.
  int match(const pcre2_code* code, std::string_view text, std::size_t from) {
    const int found = match(code, text, from, PCRE2_NO_UTF_CHECK);
    return found == PCRE2_ERROR_JIT_STACKLIMIT ? match(code, text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT)
                                               : found;
  }
  TextRange found() const {
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_);
    return {ends[0], ends[1]};
  }

 private:
  int match(const pcre2_code* code, std::string_view text, std::size_t from, std::uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options, data_,
                       context_);
  }

  static constexpr std::size_t kStackBegin = std::size_t{32} << 10, kStackEnd = std::size_t{64} << 20;

  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

Matcher& matcher() {
  thread_local Matcher matcher;
  return matcher;
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

Regex Regex::oniguruma(std::string_view pattern, const std::string& place) {
  // Ruby's ^ and $ are those of lines, and a dot is any character but a line feed.
  return {oniguruma_to_pcre2(pattern, place), PCRE2_UCP | PCRE2_MULTILINE, std::string(pattern), place};
}

Regex Regex::literal(std::string_view text, const std::string& place) {
  return {text, PCRE2_LITERAL, std::string(text), place};
}

Regex::Regex(std::string_view pattern, unsigned options, const std::string& source, const std::string& place)
    : place_(place) {
  using CompileContext = std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)>;
  const CompileContext context(pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | options, &error, &at, context.get());
  if (code == nullptr)
    throw Error(Code::kBadCheckpoint, fmt::format("\"{}\" is no regular expression that can be matched: {}",
                                                  source, message_of(error)))
        .at(place)
        .legal("a pattern in Oniguruma's syntax");
  code_ = std::shared_ptr<const void>(
      code, [](const void* c) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(c))); });
  // Where memory must not be executable this fails, and matching is interpreted: slower, with the same
  // result.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

std::optional<TextRange> Regex::search(std::string_view text, std::size_t from) const {
  const int found = matcher().match(static_cast<const pcre2_code*>(code_.get()), text, from);
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0)
    throw Error(Code::kBadCheckpoint,
                fmt::format("the pattern fails on a text of {} bytes: {}", text.size(), message_of(found)))
        .at(place_);
  return matcher().found();
}

void Regex::partition(std::string_view text, FunctionRef<void(TextRange, bool is_match)> out) const {
  if (text.empty()) return;
  std::size_t done = 0;  // the end of what was told
  std::optional<std::size_t> last_match;
  for (std::size_t from = 0; from <= text.size();) {
    const std::optional<TextRange> match = search(text, from);
    if (!match) break;
    if (match->begin == match->end && match->end == last_match) {
      from += from < text.size() ? char_at(text, from).bytes : 1;
      continue;
    }
    if (done < match->begin) out({done, match->begin}, false);
    out(*match, true);
    done = from = match->end;
    last_match = match->end;
  }
  if (done < text.size()) out({done, text.size()}, false);
}

std::string Regex::replaced(std::string_view text, std::string_view content) const {
  std::string result;
  partition(text, [&](TextRange range, bool is_match) {
    result += is_match ? content : text.substr(range.begin, range.end - range.begin);
  });
  return result;
}

}  // namespace hyperrun
