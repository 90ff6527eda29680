// Rules for every file of the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/architecture/source_tree.h"

namespace hyperrun {
namespace {

constexpr std::ptrdiff_t kMostLines = 600;  // more than one idea hides in a longer file

const SourceTree& tree() {
  static const SourceTree tree(HYPERRUN_SOURCE_DIR);
  return tree;
}

std::size_t line_of(const std::string& text, std::size_t at) {
  return static_cast<std::size_t>(
             std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
         1;
}

// Files that tests compare with, not read by people from top to bottom.
bool is_fixture(const std::string& path) {
  return path.find("/golden/") != std::string::npos || path.find("/fixture/") != std::string::npos;
}

TEST(Files, AreShortEnoughToRead) {
  for (const auto& [path, file] : tree().files())
    if (!is_fixture(path)) {
      EXPECT_LE(std::ranges::count(file.text, '\n'), kMostLines) << path;
    }
}

TEST(Files, NameNoPlaceOfOneMachine) {
  // Split, so that this file does not name them.
  for (const std::string place : {"/wo"
                                  "rk/",
                                  "/ro"
                                  "ot/"})
    for (const auto& [path, file] : tree().files()) {
      const std::size_t at = file.text.find(place);
      const bool whole = at != std::string::npos &&
                         (at == 0 || !std::isalnum(static_cast<unsigned char>(file.text[at - 1])));
      EXPECT_FALSE(whole) << path << ":" << line_of(file.text, at) << ": " << place;
    }
}

TEST(Files, LeaveNothingForLater) {
  for (const std::string word : {"TO"
                                 "DO",
                                 "FIX"
                                 "ME"})
    for (const auto& [path, file] : tree().files()) {
      const std::size_t at = is_fixture(path) ? std::string::npos : file.text.find(word);
      EXPECT_EQ(at, std::string::npos) << path << ":" << line_of(file.text, at) << ": " << word;
    }
}

TEST(Files, BeginHeadersWithTheirGuard) {
  for (const auto& [path, file] : tree().files())
    if (path.ends_with(".h") && !path.ends_with("-inl.h")) {
      EXPECT_NE(file.text.find("#pragma once\n"), std::string::npos) << path;
    }
}

// The CMakeLists.txt that is nearest above it names every source; a test that nobody builds holds nothing.
TEST(Files, AreBuilt) {
  for (const auto& [path, file] : tree().files()) {
    if (!path.ends_with(".cc")) continue;
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);
    const SourceFile* build = nullptr;
    for (std::size_t end = slash; build == nullptr && end != std::string::npos;
         end = path.rfind('/', end - 1))
      if (const auto at = tree().files().find(path.substr(0, end) + "/CMakeLists.txt");
          at != tree().files().end())
        build = &at->second;
    ASSERT_NE(build, nullptr) << path;
    std::set<std::string> words;
    std::string text = build->text;
    std::ranges::replace_if(
        text, [](char c) { return c == '(' || c == ')'; }, ' ');
    std::istringstream in(text);
    for (std::string word; in >> word;) words.insert(word.substr(word.rfind('/') + 1));
    const std::size_t suffix = name.rfind("_test.cc");  // of names that a loop completes
    const bool in_a_loop = words.contains("${part}_test.cc") && suffix != std::string::npos &&
                           words.contains(name.substr(0, suffix));
    EXPECT_TRUE(words.contains(name) || in_a_loop) << path << " is not in " << build->path;
  }
}

// Tests and benchmarks mirror the rooms, so they are named as a whole.
TEST(Architecture, NamesEveryFolder) {
  std::set<std::string> folders;
  for (const auto& [path, file] : tree().files()) {
    std::string folder = path.substr(0, path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    if (folder.starts_with("tests/") || folder.starts_with("bench/"))
      folder = folder.substr(0, folder.find('/'));
    if (!folder.empty()) folders.insert(folder);
  }
  ASSERT_TRUE(folders.contains("runtime/base")) << "the sources were not found";
  const std::string& text = tree().files().at("docs/design/architecture.md").text;
  for (const std::string& folder : folders)
    EXPECT_NE(text.find("`" + folder + "/`"), std::string::npos)
        << folder << " is not in docs/design/architecture.md";
}

// A pointer into the sources that docs give must lead somewhere: `folder/file.ext` in backquotes.
TEST(Docs, PointAtFilesThatExist) {
  std::set<std::string> top;
  for (const auto& [path, file] : tree().files()) top.insert(path.substr(0, path.find('/')));
  for (const auto& [path, file] : tree().files()) {
    if (!path.ends_with(".md")) continue;
    for (std::size_t at = file.text.find('`'); at != std::string::npos;) {
      const std::size_t end = file.text.find('`', at + 1);
      if (end == std::string::npos) break;
      const std::string quoted = file.text.substr(at + 1, end - at - 1);
      const bool is_path = quoted.find('/') != std::string::npos &&
                           quoted.find_first_of(" *<>{}$\n:") == std::string::npos &&
                           top.contains(quoted.substr(0, quoted.find('/')));
      if (is_path && !quoted.ends_with('/')) {
        EXPECT_TRUE(tree().files().contains(quoted))
            << path << ":" << line_of(file.text, at) << ": " << quoted;
      }
      at = file.text.find('`', end + 1);
    }
  }
}

}  // namespace
}  // namespace hyperrun
