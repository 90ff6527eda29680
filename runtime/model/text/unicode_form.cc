#include "runtime/model/text/unicode_form.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/valid_text.h"

namespace hyperrun {
namespace {

constexpr char32_t kCodePoints = 0x110000;

int options_of(UnicodeForm::Kind kind) {
  using Kind = UnicodeForm::Kind;
  const bool composed = kind == Kind::kNfc || kind == Kind::kNfkc;
  const bool compatible = kind == Kind::kNfkc || kind == Kind::kNfkd;
  return UTF8PROC_STABLE | (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
         (compatible ? UTF8PROC_COMPAT : 0);
}

bool is_surrogate(char32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

// The code points of one character, decomposed.
std::u32string decomposed(char32_t code, int options) {
  std::array<utf8proc_int32_t, 32> codes{};
  int last_class = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), codes.data(), codes.size(),
      static_cast<utf8proc_option_t>((options & UTF8PROC_COMPAT) | UTF8PROC_STABLE | UTF8PROC_DECOMPOSE),
      &last_class);
  HR_CHECK(count >= 0 && count <= std::ssize(codes));
  return {codes.begin(), codes.begin() + count};
}

}  // namespace

bool is_blank(char32_t c) {
  return c == ' ' || (c >= 0x9 && c <= 0xD) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::size_t blank_bytes_at_front(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Char c = char_at(text, at);
    if (!is_blank(c.code)) break;
    at += c.bytes;
  }
  return at;
}

std::size_t blank_bytes_at_end(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t at = begin - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) --at;
    if (!is_blank(char_at(text, at).code)) break;
    begin = at;
  }
  return text.size() - begin;
}

const UnicodeForm& UnicodeForm::get(Kind kind) {
  // Each form is made when it is first asked for; its table takes some milliseconds.
  switch (kind) {
    case Kind::kNfc: {
      static const UnicodeForm form(kind);
      return form;
    }
    case Kind::kNfd: {
      static const UnicodeForm form(kind);
      return form;
    }
    case Kind::kNfkc: {
      static const UnicodeForm form(kind);
      return form;
    }
    case Kind::kNfkd: break;
  }
  static const UnicodeForm form(Kind::kNfkd);
  return form;
}

UnicodeForm::UnicodeForm(Kind kind) : kind_(kind), inert_(kCodePoints / 64) { find_inert(); }

// A character is inert if it decomposes to itself or is composed again, has no combining class, and is never
// the second part of a composition. Second parts are found in the decompositions of what is composed again.
void UnicodeForm::find_inert() {
  const int options = options_of(kind_);
  const bool composes = (options & UTF8PROC_COMPOSE) != 0;
  const auto clear = [&](char32_t code) { inert_[code / 64] &= ~(std::uint64_t{1} << (code % 64)); };
  inert_.assign(inert_.size(), ~std::uint64_t{0});
  for (char32_t code = 0x80; code < kCodePoints; ++code) {
    if (is_surrogate(code)) continue;
    if (utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class != 0) clear(code);
    std::u32string parts = decomposed(code, options);
    if (parts == std::u32string(1, code)) continue;
    const std::u32string all = parts;
    std::vector<utf8proc_int32_t> composed(parts.begin(), parts.end());
    if (composes)
      composed.resize(static_cast<std::size_t>(
          utf8proc_normalize_utf32(composed.data(), static_cast<utf8proc_ssize_t>(composed.size()),
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE))));
    if (composed.size() != 1 || composed[0] != static_cast<utf8proc_int32_t>(code)) {
      clear(code);
      continue;
    }
    for (const char32_t part : all.substr(1)) clear(part);
  }
}

std::string UnicodeForm::normalized(std::string_view text) const {
  utf8proc_uint8_t* out = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                              static_cast<utf8proc_ssize_t>(text.size()), &out,
                                              static_cast<utf8proc_option_t>(options_of(kind_)));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(out, std::free);
  HR_CHECK(bytes >= 0, utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(out), static_cast<std::size_t>(bytes)};
}

void UnicodeForm::apply(std::string& text) const {
  std::string out;
  std::size_t copied = 0;  // what is in `out`
  std::size_t inert = 0;   // where the last inert character begins
  for (std::size_t at = 0; at < text.size();) {
    const Char c = valid_char_at(text, at);
    if (is_inert(c.code)) {
      inert = at;
      at += c.bytes;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && !is_inert(valid_char_at(text, end).code))
      end += valid_char_at(text, end).bytes;
    out += std::string_view(text).substr(copied, inert - copied);
    out += normalized(std::string_view(text).substr(inert, end - inert));
    copied = inert = at = end;
  }
  if (copied == 0) return;
  out += std::string_view(text).substr(copied);
  text = std::move(out);
}

}  // namespace hyperrun
