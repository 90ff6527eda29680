// Tests of tools/omni_data without a network: its tables, and its dry runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>

#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTools = std::string(HYPERRUN_SOURCE_DIR) + "/tools/";

struct Said {
  int status;
  std::string text;
};

Said omni_data(const std::string& words) {
  FILE* pipe = ::popen(("sh '" + kTools + "omni_data' " + words + " 2>&1").c_str(), "r");
  Said said{-1, ""};
  std::array<char, 4096> block;
  for (std::size_t n; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    said.text.append(block.data(), n);
  const int status = ::pclose(pipe);
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

// The lines of a table, without comments.
std::vector<std::string> table(const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream in(content(kTools + "omni_" + name + ".txt"));
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#')) lines.push_back(line);
  return lines;
}

TEST(OmniData, HelpAndPlanDoNothingButTell) {
  const Said help = omni_data("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.text, HasSubstr("tools/omni_data [--plan] [--again] [emoji|speech|prompts...]"));

  const Said plan = omni_data("--plan");
  EXPECT_EQ(plan.status, 0);
  EXPECT_THAT(plan.text, HasSubstr("emoji-datasource-google@16.0.0"));
  EXPECT_THAT(plan.text, HasSubstr(std::to_string(table("words").size()) + " words by " +
                                   std::to_string(table("voices").size()) + " voices"));
  EXPECT_THAT(plan.text, HasSubstr(std::to_string(table("prompts").size()) + " recorded words"));
  EXPECT_THAT(omni_data("--plan speech").text, Not(HasSubstr("emoji")));
}

TEST(OmniData, RefusesWhatItDoesNotKnow) {
  const Said said = omni_data("--plan speach");
  EXPECT_EQ(said.status, 1);
  EXPECT_THAT(said.text, HasSubstr("not expected: speach"));
}

TEST(OmniData, WordsAndVoicesMakeIdsThatDiffer) {
  std::set<std::string> words, voices, splits;
  for (const std::string& word : table("words")) {
    EXPECT_TRUE(words.insert(word).second) << word;
    EXPECT_EQ(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), std::string::npos) << word;
  }
  for (const std::string& line : table("voices")) {
    const std::size_t space = line.find(' ');
    ASSERT_NE(space, std::string::npos) << line;
    EXPECT_TRUE(voices.insert(line.substr(0, space)).second) << line;
    splits.insert(line.substr(space + 1));
  }
  EXPECT_THAT(splits, ::testing::ElementsAre("held-back", "train"));
  EXPECT_GE(words.size(), 40u);
  EXPECT_GE(voices.size(), 12u);
}

TEST(OmniData, PromptsAreAFileAndItsWords) {
  std::set<std::string> ids;
  for (const std::string& line : table("prompts")) {
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    std::string id = line.substr(0, tab);
    std::ranges::replace(id, '/', '-');  // as the tool does
    EXPECT_TRUE(ids.insert(id).second) << line;
    EXPECT_EQ(line.find('\t', tab + 1), std::string::npos) << line;
    EXPECT_LT(tab + 1, line.size()) << line;
  }
  EXPECT_GT(ids.size(), 150u);
}

}  // namespace
}  // namespace hyperrun
