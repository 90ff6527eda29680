// Tokenizers of the kinds of Llama 2 and Llama 3, compared with ids of other programs (tokenizer_fixture.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/llama2c_tokenizer.h"
#include "runtime/model/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kVocab = 420;  // vocabulary of the fixture "llama2"

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(HYPERRUN_SOURCE_DIR "/tests/model/text/fixture") / name;
}

Tokenizer llama2() { return read_tokenizer(fixture("llama2/tokenizer.json")); }
Tokenizer llama2_bin() { return read_llama2c_tokenizer(fixture("llama2/tokenizer.bin"), kVocab); }
Tokenizer llama3() { return read_tokenizer(fixture("llama3/tokenizer.json")); }

json expected(const std::string& name) {
  return json::parse(read_file(fixture(name + "/expected.json"), Code::kMissingFile));
}

void expect_same_ids(const Tokenizer& tokenizer, const std::string& name) {
  const json all = expected(name);
  ASSERT_GT(all.size(), 100U);
  for (const json& one : all)
    EXPECT_EQ(tokenizer.encode(one[0].get<std::string>()), one[1].get<Ids>()) << one[0];
}

TEST(Llama2Tokenizer, IdsAreThoseOfSentencePiece) { expect_same_ids(llama2(), "llama2"); }

TEST(Llama2Tokenizer, TokenizerBinGivesTheSameIds) { expect_same_ids(llama2_bin(), "llama2"); }

TEST(Llama3Tokenizer, IdsAreThoseOfItsPattern) { expect_same_ids(llama3(), "llama3"); }

TEST(Llama2Tokenizer, WhatIsWrittenIsRead) {
  const TemporaryDirectory dir;
  write_tokenizer(llama2_bin(), dir / "t.json");
  EXPECT_EQ(read_tokenizer(dir / "t.json"), llama2_bin());
  const json written = json::parse(read_file(dir / "t.json", Code::kMissingFile));
  const json original = json::parse(read_file(fixture("llama2/tokenizer.json"), Code::kMissingFile));
  for (const char* field : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"})
    EXPECT_EQ(written[field], original[field]) << field;
  EXPECT_EQ(written["model"]["vocab"], original["model"]["vocab"]);
  EXPECT_EQ(written["model"]["merges"], original["model"]["merges"]);
}

TEST(Llama2Tokenizer, TextComesBack) {
  const Tokenizer tokenizer = llama2();
  for (const json& one : expected("llama2")) {
    const std::string text = one[0];
    if (text.find("\u2581") != std::string::npos) continue;  // it is a blank there
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xE2\x96 b\xC3")), "a\uFFFD\uFFFD b\uFFFD");
}

TEST(Llama3Tokenizer, TextComesBack) {
  const Tokenizer tokenizer = llama3();
  for (const json& one : expected("llama3")) {
    const std::string text = one[0];
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Llama2Tokenizer, SpecialTokensAndTheBlankBeforeEachText) {
  const Tokenizer tokenizer = llama2();
  EXPECT_EQ(tokenizer.begin_of_text(), 1);
  EXPECT_EQ(tokenizer.end_of_text(), 2);
  const Ids god = tokenizer.encode("God"), light = tokenizer.encode("light");
  Ids both{1};
  both.insert(both.end(), god.begin(), god.end());
  both.push_back(2);
  both.insert(both.end(), light.begin(), light.end());
  EXPECT_EQ(tokenizer.encode("<s>God</s>light"), both);
  EXPECT_EQ(tokenizer.decode(both), "God</s> light");
  EXPECT_THAT(tokenizer.encode("<s></s>"), ElementsAre(1, 2));
  EXPECT_NE(tokenizer.encode("<0x41>"), tokenizer.encode("A"));  // six characters of text
}

TEST(Llama3Tokenizer, SpecialTokensAndWordsWithoutMerges) {
  const Tokenizer tokenizer = llama3();
  const std::int32_t begin = tokenizer.vocab_size() - 3;
  EXPECT_EQ(tokenizer.begin_of_text(), begin);
  EXPECT_EQ(tokenizer.end_of_text(), begin + 1);
  EXPECT_THAT(tokenizer.encode("<|begin_of_text|><|eot_id|><|end_of_text|>"),
              ElementsAre(begin, begin + 2, begin + 1));
  EXPECT_THAT(tokenizer.encode(" firmament"), ElementsAre(begin - 1));
  EXPECT_GT(tokenizer.encode(" firmaments").size(), 2U);
  EXPECT_EQ(tokenizer.decode(Ids{begin, begin - 1}), " firmament");
}

// If a token crosses blanks, words are not cut at blanks any more.
TEST(Llama2Tokenizer, ATokenAcrossBlanks) {
  const TemporaryDirectory dir;
  json root = json::parse(read_file(fixture("llama2/tokenizer.json"), Code::kMissingFile));
  root["model"]["vocab"]["t▁l"] = kVocab;
  root["model"]["vocab"]["t▁"] = kVocab + 1;
  auto& merges = root["model"]["merges"];
  merges.insert(merges.begin(), {"t ▁", "t▁ l"});
  put_file(dir / "t.json", root.dump());
  const Tokenizer tokenizer = read_tokenizer(dir / "t.json");
  EXPECT_THAT(tokenizer.encode("t l"), ::testing::Contains(kVocab));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("that light. x t l")), "that light. x t l");
}

// ---- tokenizer.bin

struct Piece {
  float score;
  std::string text;
};

std::vector<Piece> pieces() {
  std::vector<Piece> all{{0, "<unk>"}, {0, "\n<s>\n"}, {0, "\n</s>\n"}};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    all.push_back({0, name});
  }
  for (const char* text : {" a", " ab", " ", "a", "b", "ab"})
    all.push_back({-static_cast<float>(all.size()), text});
  return all;
}

std::string bin(const std::vector<Piece>& pieces) {
  std::string out;
  const auto append = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  append(std::int32_t{6});
  for (const Piece& p : pieces) {
    append(p.score);
    append(static_cast<std::int32_t>(p.text.size()));
    out += p.text;
  }
  return out;
}

TEST(Llama2cTokenizer, TheHighestScoreMergesFirst) {
  const TemporaryDirectory dir;
  std::vector<Piece> all = pieces();
  const auto ids = [&](std::string_view text) {
    put_file(dir / "t.bin", bin(all));
    return read_llama2c_tokenizer(dir / "t.bin", static_cast<std::int32_t>(all.size())).encode(text);
  };
  EXPECT_THAT(ids("ab"), ElementsAre(260));  // " a", " ab"
  EXPECT_THAT(ids("aab"), ElementsAre(259, 264));
  all[264].score = 1;  // "ab" before " a"; " ab" of " " and "ab" follows
  EXPECT_THAT(ids("ab"), ElementsAre(260));
  all[260].text = "bb";
  EXPECT_THAT(ids("ab"), ElementsAre(261, 264));
  all[264].score = -1000;
  EXPECT_THAT(ids("ab"), ElementsAre(259, 263));
}

TEST(Llama2cTokenizer, WhatIsNoSuchFileIsRefused) {
  const auto edited = [](std::size_t id, const char* text, float score = 0) {
    std::vector<Piece> all = pieces();
    all[id] = {score, text};
    return bin(all);
  };
  const std::string good = bin(pieces());
  std::string negative = good;
  const std::int32_t below = -1;
  std::memcpy(&negative[8], &below, 4);
  struct Bad {
    std::string content, cause;
  };
  const Bad kBad[] = {
      {"", "ends within token 0"},
      {good.substr(0, good.size() - 1), "ends within token 264"},
      {good + "x", "goes on behind the 265 tokens of the model's vocabulary, for 1 bytes"},
      {edited(1, "<bos>"), "token 1 is \"<bos>\""},
      {edited(3 + 65, "A"), "token 68 is \"A\""},
      {edited(261, "\xFF"), "no text in UTF-8"},
      {edited(261, "b"), "\"b\" is a token twice"},
      {edited(261, "toolong"), "token 261 has a length of 7"},
      {edited(261, ""), "token 261 has a length of 0"},
      {edited(261, "c", std::nanf("")), "the score of token 261"},
      {negative, "token 0 has a length of -1"},
  };
  const TemporaryDirectory dir;
  for (const Bad& bad : kBad) {
    put_file(dir / "t.bin", bad.content);
    EXPECT_ERROR(read_llama2c_tokenizer(dir / "t.bin", 265), Code::kBadTokenizer, "t.bin", bad.cause);
  }
  put_file(dir / "t.bin", good);
  EXPECT_EQ(read_llama2c_tokenizer(dir / "t.bin", 265).vocab_size(), 265);
  EXPECT_ERROR(read_llama2c_tokenizer(dir / "t.bin", 300), Code::kBadTokenizer, "t.bin",
               "ends within token 265");
  EXPECT_ERROR(read_llama2c_tokenizer(dir / "t.bin", 258), Code::kBadTokenizer, "t.bin", "fewer than any");
  EXPECT_ERROR(read_llama2c_tokenizer(dir / "absent", 265), Code::kMissingFile, "absent", "no such file");
}

}  // namespace
}  // namespace hyperrun
