// No two types of a namespace share a name. The compiler sees one file at a time and does not tell; the
// linker keeps one of the functions that templates make for "both", such as std::vector<T>::push_back, and so
// one type's members are laid out as the other's. Which it keeps hangs on what was inlined: an optimised
// build may work where one for a sanitizer does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/architecture/source_tree.h"

namespace hyperrun {
namespace {

using Places = std::map<std::string, std::vector<std::string>>;  // of each type, by its whole name

std::string joined(const std::vector<std::string>& scopes) {
  std::string name;
  for (const std::string& scope : scopes) name += scope + "::";
  return name;
}

// Adds the types that are defined in a namespace with a name; not specialisations, nor those of another scope
// (struct Executor::Impl). Relies on the format: what a namespace holds is not indented, and its end bears a
// comment.
void add_types(const std::string& path, const std::string& text, Places& places) {
  static const std::regex kOpens(R"(^namespace ?([\w:]*) ?\{$)");
  static const std::regex kCloses(R"(^\}  // namespace.*)");
  static const std::regex kHead(
      R"(^(?:template <.+> )?(?:struct|class|union|enum(?: class)?) (?:alignas\(\w+\) )?(\w+)(| .*)$)");
  const auto defines = [](const std::string& behind_name) {
    return behind_name.find(';') >= behind_name.find('{');  // else a declaration
  };
  std::vector<std::string> scopes;
  std::istringstream in(text);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    std::smatch found;
    if (std::regex_match(line, found, kOpens)) {
      scopes.push_back(found[1]);
    } else if (std::regex_match(line, kCloses) && !scopes.empty()) {
      scopes.pop_back();
    } else if (std::ranges::count(scopes, "") == 0 && std::regex_match(line, found, kHead) &&
               defines(found[2])) {
      places[joined(scopes) + found[1].str()].push_back(path + ":" + std::to_string(number));
    }
  }
}

TEST(Types, AreFoundWithTheirNamespaces) {
  Places places;
  add_types("a.h",
            "namespace hyperrun {\n"
            "struct Other;\n"
            "enum class Later : std::uint8_t;\n"
            "struct One {\n"
            "struct alignas(kLine) Bell {\n"
            "class Two : public One {\n"
            "enum class Kind : std::uint8_t { kA, kB };\n"
            "template <typename T>\n"
            "struct Box {};\n"
            "struct One::Inner {\n"
            "struct Box<int> {\n"
            "namespace inner {\n"
            "struct One {\n"
            "}  // namespace inner\n"
            "namespace {\n"
            "struct Own {\n"
            "}  // namespace\n"
            "class Derived final : public std::vector<int> {\n"
            "class Long : public One,\n"
            "}  // namespace hyperrun\n",
            places);
  EXPECT_THAT(places, testing::UnorderedElementsAre(
                          testing::Pair("hyperrun::One", testing::ElementsAre("a.h:4")),
                          testing::Pair("hyperrun::Bell", testing::ElementsAre("a.h:5")),
                          testing::Pair("hyperrun::Two", testing::ElementsAre("a.h:6")),
                          testing::Pair("hyperrun::Kind", testing::ElementsAre("a.h:7")),
                          testing::Pair("hyperrun::Box", testing::ElementsAre("a.h:9")),
                          testing::Pair("hyperrun::inner::One", testing::ElementsAre("a.h:13")),
                          testing::Pair("hyperrun::Derived", testing::ElementsAre("a.h:18")),
                          testing::Pair("hyperrun::Long", testing::ElementsAre("a.h:19"))));
}

TEST(Types, HaveNamesOfTheirOwn) {
  Places places;
  const SourceTree tree(HYPERRUN_SOURCE_DIR);
  for (const auto& [path, file] : tree.files())
    if (is_code(file)) add_types(path, file.text, places);
  ASSERT_TRUE(places.contains("hyperrun::Program")) << "the sources were not found";
  for (const auto& [name, where] : places)
    EXPECT_THAT(where, testing::SizeIs(1)) << name << " is defined more than once";
}

}  // namespace
}  // namespace hyperrun
