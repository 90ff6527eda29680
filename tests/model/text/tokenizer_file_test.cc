#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using nlohmann::json;

Tokenizer example() { return Tokenizer::train("the whale, the whale\n\xFF\xFE the \"sea\" é é é", 280); }

json written(const TemporaryDirectory& dir) {
  write_tokenizer(example(), dir / "tokenizer.json");
  return json::parse(read_file(dir / "tokenizer.json", Code::kBadCheckpoint));
}

TEST(TokenizerFile, RoundTrip) {
  const TemporaryDirectory dir;
  written(dir);
  EXPECT_EQ(read_tokenizer(dir / "tokenizer.json"), example());
}

TEST(TokenizerFile, HasTheFieldsOfTheTokenizersLibrary) {
  const TemporaryDirectory dir;
  const json root = written(dir);
  EXPECT_EQ(root["version"], "1.0");
  EXPECT_EQ(root["model"]["type"], "BPE");
  EXPECT_EQ(root["model"]["vocab"]["<|endoftext|>"], 0);
  EXPECT_EQ(root["model"]["vocab"]["!"], 1);
  EXPECT_TRUE(root["model"]["vocab"].contains("Ġ"));  // the blank
  EXPECT_TRUE(root["model"]["vocab"].contains("Ċ"));  // the line feed
  EXPECT_THAT(root["model"]["merges"], ::testing::Contains(json("Ġwhal e")).Times(1));
  EXPECT_EQ(root["pre_tokenizer"]["type"], "ByteLevel");
  EXPECT_EQ(root["pre_tokenizer"]["add_prefix_space"], false);
  EXPECT_EQ(root["decoder"]["type"], "ByteLevel");
  EXPECT_EQ(root["added_tokens"][0]["content"], "<|endoftext|>");
  EXPECT_EQ(root["added_tokens"][0]["special"], true);
}

TEST(TokenizerFile, ReadsMergesAsPairsAndSpecialTokensOutsideTheVocabulary) {
  const TemporaryDirectory dir;
  json root = written(dir);
  for (json& merge : root["model"]["merges"]) {
    const std::string text = merge;
    const std::size_t blank = text.find(' ');
    merge = {text.substr(0, blank), text.substr(blank + 1)};
  }
  root["model"]["vocab"].erase("<|endoftext|>");
  const std::int32_t last = example().vocab_size();
  root["added_tokens"].push_back({{"id", last}, {"content", "<|endoftext|>!"}});
  put_file(dir / "tokenizer.json", root.dump());
  const Tokenizer tokenizer = read_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(tokenizer.merges(), example().merges());
  // The longer of two special tokens that begin at one place wins.
  EXPECT_THAT(tokenizer.encode("<|endoftext|>!<|endoftext|>"), ::testing::ElementsAre(last, 0));
}

struct BadFile {
  const char *pointer, *value, *place, *cause;
};

TEST(TokenizerFile, WhatWouldGiveOtherIdsIsRefusedByName) {
  const BadFile kFiles[] = {
      {"/normalizer", R"({"type":"NFC"})", "normalizer", "not supported"},
      {"/pre_tokenizer", "null", "pre_tokenizer", "missing"},
      {"/pre_tokenizer/type", R"("Whitespace")", "pre_tokenizer: type", "not supported"},
      {"/pre_tokenizer/add_prefix_space", "true", "add_prefix_space", "not supported"},
      {"/pre_tokenizer/use_regex", "false", "use_regex", "not supported"},
      {"/post_processor", R"({"type":"TemplateProcessing"})", "post_processor: single", "missing"},
      {"/model", "null", "model", "missing"},
      {"/model", "[]", "model", "JSON object"},
      {"/model/type", R"("Unigram")", "model: type", "not supported"},
      {"/model/dropout", "0.1", "dropout", "not supported"},
      {"/model/byte_fallback", "true", "byte_fallback", "not supported"},
      {"/model/vocab", "[]", "vocab", "JSON object"},
      {"/model/vocab/!", "2", "vocab", "each once"},
      {"/model/vocab/!", "-1", "vocab", "-1"},
      {"/model/vocab/!", "100000", "vocab", "each once"},
      {"/model/vocab/€", "500", "vocab", "ids must be"},
      {"/model/vocab/a b", "267", "vocab", "printable form"},
      {"/model/merges", "{}", "merges", "list"},
      {"/model/merges/0", "3", "merges", "not a pair"},
      {"/model/merges/0", R"("th")", "merges", "not a pair"},
      {"/model/merges/0", R"("t Q")", "merges", "tQ"},
      {"/model/merges/1", R"("h e")", "merges", "twice"},
      {"/added_tokens", "[]", "added_tokens", "no token ends a document"},
      {"/added_tokens/0/lstrip", "true", "lstrip", "not supported"},
      {"/added_tokens/0/id", "5", "id", "another id"},
  };
  const TemporaryDirectory dir;
  const json good = written(dir);
  for (const BadFile& bad : kFiles) {
    SCOPED_TRACE(std::string(bad.pointer) + " " + bad.value);
    json root = good;
    root[json::json_pointer(bad.pointer)] = json::parse(bad.value);
    put_file(dir / "bad.json", root.dump());
    EXPECT_ERROR(read_tokenizer(dir / "bad.json"), Code::kBadCheckpoint, bad.place, bad.cause);
  }
}

TEST(TokenizerFile, MissingOrDamaged) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(read_tokenizer(dir / "absent.json"), Code::kMissingFile, "absent.json", "no such file");
  const std::string good = written(dir).dump();
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    put_file(dir / "bad.json", good.substr(0, random() % good.size()));
    EXPECT_ERROR(read_tokenizer(dir / "bad.json"), Code::kBadCheckpoint, "bad.json", "not valid JSON");
  }
}

TEST(TokenizerFile, AVocabularyWithoutAByteIsRefused) {
  const TemporaryDirectory dir;
  const Tokenizer bytes = Tokenizer::train("", 257);
  write_tokenizer(bytes, dir / "t.json");
  json root = json::parse(read_file(dir / "t.json", Code::kBadCheckpoint));
  for (auto& [token, id] : root["model"]["vocab"].items())
    if (id == 256) {
      root["model"]["vocab"].erase(token);
      break;
    }
  put_file(dir / "t.json", root.dump());
  EXPECT_ERROR(read_tokenizer(dir / "t.json"), Code::kBadCheckpoint, "vocab", "255 of the 256");
}

}  // namespace
}  // namespace hyperrun
