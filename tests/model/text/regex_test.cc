#include "runtime/model/text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/model/text/oniguruma.h"
#include "runtime/model/text/pre_tokenizer.h"
#include "tests/support/errors.h"

namespace hyperrun {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> matches(const std::string& pattern, std::string_view text) {
  std::vector<std::string> found;
  Regex::oniguruma(pattern, "test").partition(text, [&](TextRange range, bool is_match) {
    if (is_match) found.emplace_back(text.substr(range.begin, range.end - range.begin));
  });
  return found;
}

// Expected values of the pattern by Oniguruma's documentation, doc/RE.
TEST(Regex, MeansWhatItMeansInOniguruma) {
  EXPECT_THAT(matches("\\h+", "x3Fg"), ElementsAre("3F"));
  EXPECT_THAT(matches("\\w+", "a\u203Fb-\u0301"), ElementsAre("a\u203Fb", "\u0301"));
  EXPECT_THAT(matches("\\s", "\u0085\u180E\u3000"), ElementsAre("\u0085", "\u3000"));
  EXPECT_THAT(matches("a{2}+", "aaaaa"), ElementsAre("aaaa"));
  EXPECT_THAT(matches("a(?i)b|c", "aB C aC"), ElementsAre("aB", "aC"));
  EXPECT_THAT(matches("(?m)a.b", "a\nb"), ElementsAre("a\nb"));
  EXPECT_THAT(matches("[a-z&&[^aeiou]]+", "abcde"), ElementsAre("bcd"));
  EXPECT_THAT(matches("[^a[bc]d]", "abxcd"), ElementsAre("x"));
  EXPECT_THAT(matches("^.", "ab\ncd"), ElementsAre("a", "c"));
}

TEST(Regex, LiteralsMatchThemselves) {
  EXPECT_EQ(Regex::literal("a.b|", "test").replaced("a.b| axb| a.b|", "-"), "- axb| -");
}

TEST(Regex, WhatIsNotTranslatedIsRefusedByName) {
  for (const char* pattern :
       {"(?~a)", "(*FAIL)", "(?x) a", "\\y", "\\Q.\\E", "[\\q]", "\\xE4", "\\p{}", "\\p", "a)", "(a", "[a",
        "(?<=a", "\\", "[[:alpha]", "\\u12", "(?#", "(?i)[\\p{Lu}]", "(?i:a|[[:lower:]])"})
    EXPECT_ERROR(Regex::oniguruma(pattern, "there"), Code::kBadCheckpoint, "there", "not supported");
  for (const char* pattern : {"*a", "\\p{Klingon}", "(?<=a*)b", "[z-a]"})
    EXPECT_ERROR(Regex::oniguruma(pattern, "there"), Code::kBadCheckpoint, "there", "no regular expression");
}

// Of nested repetitions the steps grow exponentially with the text.
TEST(Regex, EndsOnPatternsThatTakeTooManySteps) {
  const Regex regex = Regex::oniguruma("(x+x+)+[yz]", "there");
  EXPECT_ERROR(regex.search(std::string(100, 'x'), 0), Code::kBadCheckpoint, "there", "100 bytes");
}

TEST(Regex, ManySteppedMatchesOfLongTexts) {
  const std::string text(1 << 20, 'x');
  EXPECT_THAT(matches("(?:x|y)+", text), ElementsAre(text));
}

std::vector<std::string> gpt2(std::string_view text) {
  std::vector<std::string> words;
  gpt2_words(/*raw=*/true)->cut({text}, [&](TextPiece word) { words.emplace_back(word.text); });
  return words;
}

TEST(Gpt2Words, TakeOneBlank) {
  EXPECT_THAT(gpt2("Call me Ishmael."), ElementsAre("Call", " me", " Ishmael", "."));
  EXPECT_THAT(gpt2("a  b   c"), ElementsAre("a", " ", " b", "  ", " c"));
  EXPECT_THAT(gpt2("in 1851, or 2x"), ElementsAre("in", " 1851", ",", " or", " 2", "x"));
  EXPECT_THAT(gpt2("x\n\ny \n"), ElementsAre("x", "\n", "\n", "y", " \n"));
  EXPECT_THAT(gpt2("it's 'sun IT'S"), ElementsAre("it", "'s", " '", "sun", " IT", "'", "S"));
  EXPECT_THAT(gpt2("日本語 Ωmega ½٣ a\u0301"), ElementsAre("日本語", " Ωmega", " ½٣", " a", "\u0301"));
  EXPECT_THAT(gpt2(""), ElementsAre());
}

}  // namespace
}  // namespace hyperrun
