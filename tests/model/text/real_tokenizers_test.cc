// Tokenizers of published models, compared with Hugging Face's library on a megabyte of mixed text. The files
// are those that tools/tokenizers fetches and makes; without them the test is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/tokenizer.h"
#include "tests/model/text/reference.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

fs::path data() {
  // A folder of the same form, for comparisons by hand.
  if (const char* other = std::getenv("HYPERRUN_TOKENIZERS")) return other;
  return HYPERRUN_SOURCE_DIR "/data/tokenizers";
}

// The folders with what is compared.
std::vector<std::string> names() {
  std::vector<std::string> names;
  if (fs::exists(data()))
    for (const fs::directory_entry& entry : fs::directory_iterator(data()))
      if (fs::exists(entry.path() / "expected.bin")) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class RealTokenizer : public ::testing::TestWithParam<std::string> {
 protected:
  fs::path file(const char* name) const { return data() / GetParam() / name; }
};

TEST(RealTokenizers, AreThere) {
  if (names().empty()) GTEST_SKIP() << data().string() << " has no tokenizers: tools/tokenizers makes them";
}

// Where two lists part, with what stands there.
template <class List>
std::string difference(const List& ours, const List& theirs) {
  const auto [a, b] = std::ranges::mismatch(ours, theirs);
  const auto from = std::max<std::ptrdiff_t>(0, a - ours.begin() - 3);
  const auto show = [&](const List& list) {
    return ::testing::PrintToString(List(list.begin() + std::min(from, std::ssize(list)),
                                         list.begin() + std::min(from + 12, std::ssize(list))));
  };
  return "from element " + std::to_string(from) + ": " + show(ours) + ", expected " + show(theirs);
}

TEST_P(RealTokenizer, HasTheIdsAndTextsOfTheLibrary) {
  const Tokenizer tokenizer = read_tokenizer(file("tokenizer.json"));
  int number = 0, different = 0;
  for (const ReferenceText& one : read_reference(data() / "texts.bin", file("expected.bin"))) {
    ++number;
    if (const auto ids = tokenizer.encode(one.text); ids != one.ids && ++different <= 5) {
      ADD_FAILURE() << "ids of text " << number - 1 << ", " << difference(ids, one.ids);
    }
    std::vector<std::int32_t> ids = one.ids;
    // A begin_of_text at the front would be left out.
    if (!ids.empty() && ids[0] == tokenizer.begin_of_text()) continue;
    if (const std::string text = tokenizer.decode(ids); text != one.decoded && ++different <= 5) {
      ADD_FAILURE() << "text " << number - 1 << ", " << difference(text, one.decoded);
    }
  }
  EXPECT_GT(number, 10);
  EXPECT_EQ(different, 0) << "of " << number << " texts";
}

TEST_P(RealTokenizer, IsWrittenAsItWasRead) {
  const TemporaryDirectory dir;
  write_tokenizer(read_tokenizer(file("tokenizer.json")), dir / "t.json");
  EXPECT_TRUE(read_file(dir / "t.json", Code::kMissingFile) ==
              read_file(file("tokenizer.json"), Code::kMissingFile));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealTokenizer);
INSTANTIATE_TEST_SUITE_P(Published, RealTokenizer, ::testing::ValuesIn(names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace hyperrun
