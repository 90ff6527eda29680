#include "runtime/model/text/pretokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/model/text/unicode.h"

namespace hyperrun {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> words(std::string_view text, Words kind = Words::kGpt2) {
  std::vector<std::string> out;
  for_each_word(kind, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

// The expected words are those of GPT-2's regular expression.
TEST(Pretokenize, WordsTakeOneBlank) {
  EXPECT_THAT(words("Call me Ishmael."), ElementsAre("Call", " me", " Ishmael", "."));
  EXPECT_THAT(words("a  b   c"), ElementsAre("a", " ", " b", "  ", " c"));
  EXPECT_THAT(words("in 1851, or 2x"), ElementsAre("in", " 1851", ",", " or", " 2", "x"));
  EXPECT_THAT(words(" \n\n x"), ElementsAre(" \n\n", " x"));
  EXPECT_THAT(words("x\n\ny"), ElementsAre("x", "\n", "\n", "y"));
  EXPECT_THAT(words("x \n"), ElementsAre("x", " \n"));
  EXPECT_THAT(words("x "), ElementsAre("x", " "));
  EXPECT_THAT(words(" "), ElementsAre(" "));
  EXPECT_THAT(words("\t\tx"), ElementsAre("\t", "\t", "x"));
  EXPECT_THAT(words(""), ElementsAre());
}

TEST(Pretokenize, Contractions) {
  EXPECT_THAT(
      words("it's we're I'll don't he'd I've I'm"),
      ElementsAre("it", "'s", " we", "'re", " I", "'ll", " don", "'t", " he", "'d", " I", "'ve", " I", "'m"));
  EXPECT_THAT(words("'So' 's IT'S"), ElementsAre("'", "So", "'", " '", "s", " IT", "'", "S"));
  EXPECT_THAT(words("'sun ''s"), ElementsAre("'s", "un", " ''", "s"));
}

TEST(Pretokenize, Unicode) {
  EXPECT_THAT(words("ago—never ‘ïta’"), ElementsAre("ago", "—", "never", " ‘", "ïta", "’"));
  EXPECT_THAT(words("日本語 Ωmega ½٣"), ElementsAre("日本語", " Ωmega", " ½٣"));
  EXPECT_THAT(words("a\u00A0\u3000b"), ElementsAre("a", "\u00A0", "\u3000", "b"));
  EXPECT_THAT(words("a\u0301"), ElementsAre("a", "\u0301"));  // a combining accent is no letter
}

// The expected words are those of Llama 3's regular expression.
TEST(Pretokenize, Llama3) {
  const auto w = [](std::string_view text) { return words(text, Words::kLlama3); };
  EXPECT_THAT(w("Call me  Ishmael."), ElementsAre("Call", " me", " ", " Ishmael", "."));
  EXPECT_THAT(w("IT'S we'Ll"), ElementsAre("IT", "'S", " we", "'Ll"));
  EXPECT_THAT(w("it'\u017Fe"), ElementsAre("it", "'\u017F", "e"));
  EXPECT_THAT(w("(x) _y\tz"), ElementsAre("(x", ")", " _", "y", "\tz"));
  EXPECT_THAT(w("12345 6"), ElementsAre("123", "45", " ", "6"));
  EXPECT_THAT(w("a;\r\n\nb"), ElementsAre("a", ";\r\n\n", "b"));
  EXPECT_THAT(w("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(w("\nb\n"), ElementsAre("\n", "b", "\n"));
  EXPECT_THAT(w("x   "), ElementsAre("x", "   "));
  EXPECT_THAT(w("\u00A0b \u2014 c"), ElementsAre("\u00A0b", " \u2014", " c"));
  EXPECT_THAT(w("日本語１２３４"), ElementsAre("日本語", "１２３", "４"));
}

TEST(Pretokenize, Blanks) {
  EXPECT_THAT(words("  a b\nc  ", Words::kBlanks), ElementsAre("  a", " b\nc", "  "));
  EXPECT_THAT(words("a b", Words::kOne), ElementsAre("a b"));
}

TEST(Pretokenize, InvalidBytesAreOther) {
  EXPECT_THAT(words("a\xFF\xC3 b\xE2\x82"), ElementsAre("a", "\xFF\xC3", " b", "\xE2\x82"));
  EXPECT_THAT(words("\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80"),
              ElementsAre("\xC0\x80\xED\xA0\x80\xF4\x90\x80\x80"));
}

TEST(Pretokenize, WordsLieEndToEnd) {
  std::mt19937 random(3);
  const std::string pieces[] = {" ", "\n", "a", "'", "s", "é", "1", ".", "\xFF", "\xE2", "—", "\u2003"};
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::size_t n = random() % 20; n > 0; --n) text += pieces[random() % std::size(pieces)];
    for (const Words kind : {Words::kGpt2, Words::kLlama3, Words::kBlanks}) {
      std::string joined;
      for (const std::string& word : words(text, kind)) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(Unicode, DecodesWhatItEncodes) {
  for (char32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 37) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code);
    const Char c = char_at(text, 0);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.bytes, text.size());
    if (text.size() > 1) {
      ASSERT_EQ(char_at(text.substr(0, text.size() - 1), 0).code, kInvalid);
    }
  }
}

}  // namespace
}  // namespace hyperrun
