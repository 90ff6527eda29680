// Reading, writing and refusing MindSpore's notation of layouts.
#include "runtime/spec/layout_notation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;
using Dims = std::vector<std::vector<std::string>>;

TEST(LayoutNotation, ReadsAnEntryForEachDimension) {
  EXPECT_EQ(parse_layout(R"(("tp", "None", ("dp", "cp")))").dims, (Dims{{"tp"}, {}, {"dp", "cp"}}));
  EXPECT_EQ(parse_layout("('tp',None,('dp','cp'))").dims, (Dims{{"tp"}, {}, {"dp", "cp"}}));
  EXPECT_EQ(parse_layout(" ( \n'None' ,\t('a' , ) , ) ").dims, (Dims{{}, {"a"}}));
  EXPECT_EQ(parse_layout("()").dims, Dims{}) << "of a scalar";
  EXPECT_EQ(parse_layout("('tp')").mesh, std::vector<MeshAxis>{});
}

TEST(LayoutNotation, ReadsTheMeshInFront) {
  const PositionalLayout layout = parse_layout(R"(Layout((2, 16), ("dp", 'tp'))("tp", "None"))");
  EXPECT_EQ(layout.mesh, (std::vector<MeshAxis>{{"dp", 2}, {"tp", 16}}));
  EXPECT_EQ(layout.dims, (Dims{{"tp"}, {}}));
  EXPECT_EQ(parse_layout("Layout((4,),('x',),)('x')").mesh, (std::vector<MeshAxis>{{"x", 4}}));
}

TEST(LayoutNotation, WritesWhatItReads) {
  for (const char* text : {R"(("tp", "None", ("dp", "cp")))", "()", R"(("None"))",
                           R"(Layout((2, 2), ("dp", "tp"))(("tp", "dp")))"})
    EXPECT_EQ(format_layout(parse_layout(text)), text);
}

struct Bad {
  const char* text;
  const char* cause;
};

TEST(LayoutNotation, SaysWhereItIsNotUnderstood) {
  for (const Bad& bad : {
           Bad{"", "at its end: '(' must stand here"},
           Bad{"'tp'", "at character 1: '(' must stand here"},
           Bad{"('tp'", "at its end: ',' or ')' must stand here"},
           Bad{"('tp' 'dp')", "at character 7: ',' or ')'"},
           Bad{"(tp)", "at character 2: an axis in quotes, several in parentheses, or \"None\""},
           Bad{"(,)", "at character 2: an axis in quotes"},
           Bad{"('')", "at character 2: an axis in quotes"},
           Bad{"(\"tp')", "at character 2: this quote is not closed"},
           Bad{"('a\"b')", "no axis has a quote in its name"},
           Bad{"(())", "at character 4: these parentheses name no axis"},
           Bad{"(('a', 'None'))", "\"None\" stands alone"},
           Bad{"(('a', ('b')))", "at character 8: an axis in quotes must stand here"},
           Bad{"('a') ('b')", "at character 7: nothing may follow"},
           Bad{"Layout('a')", "at character 8: '(' must stand here"},
           Bad{"Layout((2.0), ('a'))('a')", "at character 10: ',' or ')'"},
           Bad{"Layout((x), ('a'))('a')", "at character 9: the size of an axis"},
           Bad{"Layout((99999999999), ('a'))('a')", "at character 9: this size is too large"},
           Bad{"Layout((2, 2), ('a'))('a')", "has 2 sizes and 1 names"},
           Bad{"Layout((), ())()", "has no axis"},
           Bad{"Layout((2), ('a'))", "at its end: '(' must stand here"},
       }) {
    SCOPED_TRACE(bad.text);
    try {
      parse_layout(bad.text);
      ADD_FAILURE() << "was read";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadValue);
      EXPECT_THAT(e.cause(), HasSubstr(bad.cause));
      EXPECT_THAT(e.legal(), HasSubstr("(\"AXIS\", \"None\", (\"MAJOR\", \"MINOR\"))"));
      EXPECT_FALSE(e.remedy().empty());
    }
  }
}

// The texts are made of the notation's own pieces, so that many get far.
TEST(LayoutNotation, AnyTextIsReadOrRefused) {
  constexpr std::string_view kPieces[] = {"(",    ")",      ",", "'a'", "\"b\"", "None", "'None'",
                                          "'tp'", "Layout", "2", " ",   "'",     "\xff", "Layout((2),('a'))"};
  std::mt19937 random(11);
  int read = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text = random() % 2 ? "(" : "";
    for (std::size_t n = random() % 8; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    try {
      const PositionalLayout layout = parse_layout(text);
      ++read;
      EXPECT_EQ(parse_layout(format_layout(layout)), layout) << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadValue) << text;
    }
  }
  EXPECT_GT(read, 100) << "or nothing is tried";
}

}  // namespace
}  // namespace hyperrun
