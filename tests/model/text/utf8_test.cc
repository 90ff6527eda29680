#include "runtime/base/utf8.h"

#include <gtest/gtest.h>

#include "runtime/model/text/lossy_utf8.h"

namespace hyperrun {
namespace {

TEST(Utf8, DecodesWhatItEncodes) {
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

// The table of Unicode's standard, 3.9, "U+FFFD Substitution of Maximal Subparts".
TEST(LossyUtf8, EachBrokenSequenceBecomesOneReplacement) {
  EXPECT_EQ(lossy_utf8("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(lossy_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80\xF4\x91\x92\x93\xFF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(lossy_utf8("\xC3"), "\uFFFD");
  EXPECT_EQ(lossy_utf8("a\u20AC\U0001F600"), "a\u20AC\U0001F600");
}

}  // namespace
}  // namespace hyperrun
