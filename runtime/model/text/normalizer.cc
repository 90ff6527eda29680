#include "runtime/model/text/normalizer.h"

#include <utf8proc.h>

#include <array>
#include <utility>

#include "runtime/base/utf8.h"
#include "runtime/model/text/charsmap.h"
#include "runtime/model/text/spelling.h"
#include "runtime/model/text/unicode_form.h"

namespace hyperrun {
namespace {

using Part = std::unique_ptr<Normalizer>;

// A normalizer that is a function of the text.
template <class Function>
class Applies : public Normalizer {
 public:
  explicit Applies(Function function) : function_(std::move(function)) {}
  void apply(std::string& text) const override { function_(text); }

 private:
  Function function_;
};

template <class Function>
Part applying(Function function) {
  return std::make_unique<Applies<Function>>(std::move(function));
}

// The text with each character replaced by what `map` appends for it.
template <class Map>
std::string mapped(const std::string& text, const Map& map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    map(c.code, out);
    at += c.bytes;
  }
  return out;
}

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }
bool is_mark(char32_t code) {
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ME;
}
// What BERT takes for control characters; it keeps those that Unicode has not assigned.
bool is_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
}

// Ideographs of Chinese, as BERT has them.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// Each character in lower case by itself, so a sigma at a word's end is like any other. Of all characters
// only the capital I with a dot becomes two.
std::string lower(const std::string& text) {
  return mapped(text, [](char32_t code, std::string& out) {
    if (code == 0x130)
      out += "i\u0307";
    else
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  });
}

template <class Predicate>
std::string without(const std::string& text, Predicate is_removed) {
  return mapped(text, [&](char32_t code, std::string& out) {
    if (!is_removed(code)) append_utf8(out, code);
  });
}

// The characters that SentencePiece's rule nmt removes, and those that it takes for blanks.
bool is_removed_by_nmt(char32_t c) {
  return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}
bool is_blank_by_nmt(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

template <UnicodeForm::Kind kKind>
Part read_form(const PipelineStep& step) {
  step.allow({});
  return applying([](std::string& text) { UnicodeForm::get(kKind).apply(text); });
}

Part read_lowercase(const PipelineStep& step) {
  step.allow({});
  return applying([](std::string& text) { text = lower(text); });
}

Part read_strip_accents(const PipelineStep& step) {
  step.allow({});
  return applying([](std::string& text) { text = without(text, is_mark); });
}

Part read_nmt(const PipelineStep& step) {
  step.allow({});
  return applying([](std::string& text) {
    text = mapped(text, [](char32_t code, std::string& out) {
      if (!is_removed_by_nmt(code)) append_utf8(out, is_blank_by_nmt(code) ? U' ' : code);
    });
  });
}

Part read_strip(const PipelineStep& step) {
  step.allow({"strip_left", "strip_right"});
  const bool left = step.fields().boolean("strip_left", true);
  const bool right = step.fields().boolean("strip_right", true);
  return applying([=](std::string& text) {
    const std::size_t end = right ? text.size() - blank_bytes_at_end(text) : text.size();
    const std::size_t begin = left ? blank_bytes_at_front(std::string_view(text).substr(0, end)) : 0;
    text = text.substr(begin, end - begin);
  });
}

Part read_prepend(const PipelineStep& step) {
  step.allow({"prepend"});
  return applying([prefix = step.text("prepend")](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  });
}

Part read_replace(const PipelineStep& step) {
  step.allow({"pattern", "content"});
  return applying([pattern = step.pattern("pattern"), content = step.text("content")](std::string& text) {
    text = pattern.replaced(text, content);
  });
}

Part read_byte_level(const PipelineStep& step) {
  step.allow({});
  return applying([](std::string& text) { text = printable(text); });
}

Part read_precompiled(const PipelineStep& step) {
  step.allow({"precompiled_charsmap"});
  return applying(
      [map = Charsmap::from_base64(step.text("precompiled_charsmap"), step.place("precompiled_charsmap"))](
          std::string& text) { map.apply(text); });
}

Part read_bert(const PipelineStep& step) {
  step.allow({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool clean = step.fields().boolean("clean_text", true);
  const bool chinese = step.fields().boolean("handle_chinese_chars", true);
  const bool lowers = step.fields().boolean("lowercase", true);
  const bool strips = step.fields().boolean("strip_accents", lowers);
  return applying([=](std::string& text) {
    if (clean)
      text = mapped(text, [](char32_t code, std::string& out) {
        if (code != 0 && code != 0xFFFD && !is_control(code)) append_utf8(out, is_blank(code) ? U' ' : code);
      });
    if (chinese)
      text = mapped(text, [](char32_t code, std::string& out) {
        if (is_ideograph(code)) out += ' ';
        append_utf8(out, code);
        if (is_ideograph(code)) out += ' ';
      });
    if (strips) {
      UnicodeForm::get(UnicodeForm::Kind::kNfd).apply(text);
      text = without(text, [](char32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; });
    }
    if (lowers) text = lower(text);
  });
}

Part read_sequence(const PipelineStep& step) {
  step.allow({"normalizers"});
  std::vector<std::shared_ptr<Normalizer>> parts;
  for (const PipelineStep& inner : step.steps("normalizers")) parts.push_back(read_normalizer(inner));
  return applying([parts = std::move(parts)](std::string& text) {
    for (const auto& part : parts) part->apply(text);
  });
}

using Kind = UnicodeForm::Kind;

constexpr auto kReaders = std::to_array<StepReader<Normalizer>>({
    {"NFC", read_form<Kind::kNfc>},
    {"NFD", read_form<Kind::kNfd>},
    {"NFKC", read_form<Kind::kNfkc>},
    {"NFKD", read_form<Kind::kNfkd>},
    {"Replace", read_replace},
    {"Prepend", read_prepend},
    {"Lowercase", read_lowercase},
    {"Strip", read_strip},
    {"StripAccents", read_strip_accents},
    {"Nmt", read_nmt},
    {"Precompiled", read_precompiled},
    {"BertNormalizer", read_bert},
    {"ByteLevel", read_byte_level},
    {"Sequence", read_sequence},
});

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const PipelineStep& step) {
  return read_step<Normalizer>(step, kReaders);
}

}  // namespace hyperrun
