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
  EXPECT_EQ(tokenizer.encode("the whale"), example().encode("the whale"));
  // The longer of two special tokens that begin at one place wins.
  EXPECT_THAT(tokenizer.encode("<|endoftext|>!<|endoftext|>"), ::testing::ElementsAre(last, 0));
}

struct BadFile {
  const char *pointer, *value, *place, *cause;
};

TEST(TokenizerFile, WhatIsNotSupportedIsRefusedByName) {
  const BadFile kFiles[] = {
      {"/normalizer", R"({"type":"Fold"})", "normalizer: type", "\"Fold\" is not supported"},
      {"/normalizer", R"({"type":"NFC","form":1})", "normalizer: form", "not known for \"NFC\""},
      {"/normalizer", R"({"type":"Sequence","normalizers":[{"type":"NFC"},3]})", "normalizers[1]", "object"},
      {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"AAAA!"})", "charsmap", "not base64"},
      {"/normalizer", R"({"type":"Precompiled","precompiled_charsmap":"/wAAAA=="})", "charsmap",
       "trie's size"},
      {"/pre_tokenizer", R"({"type":"UnicodeScripts"})", "pre_tokenizer: type", "not supported"},
      {"/pre_tokenizer", R"({"use_regex":true})", "pre_tokenizer: type", "missing"},
      {"/pre_tokenizer/add_prefix_space", "1", "add_prefix_space", "true or false"},
      {"/pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})", "pattern",
       "regular expression"},
      {"/pre_tokenizer", R"x({"type":"Split","pattern":{"Regex":"(?~a)"},"behavior":"Isolated"})x", "pattern",
       "begins with"},
      {"/pre_tokenizer", R"({"type":"Split","pattern":"a","behavior":"Isolated"})", "pattern",
       "must be a pattern"},
      {"/pre_tokenizer", R"({"type":"Split","pattern":{"String":"a"},"behavior":"Kept"})", "behavior",
       "Kept"},
      {"/pre_tokenizer", R"({"type":"Split","pattern":{"String":"a"}})", "behavior", "missing"},
      {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"__"})", "replacement", "one character"},
      {"/pre_tokenizer", R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})",
       "prepend_scheme", "not supported"},
      {"/post_processor", R"({"type":"TemplateProcessing"})", "post_processor: single", "missing"},
      {"/post_processor", R"({"type":"TemplateProcessing","single":[]})", "single", "not supported"},
      {"/post_processor", R"({"type":"BertProcessing","cls":["a",0],"sep":["b",9999]})", "post_processor",
       "9999"},
      {"/post_processor", R"({"type":"BertProcessing","cls":["a",0]})", "sep", "missing"},
      {"/decoder", R"({"type":"CTC"})", "decoder: type", "not supported"},
      {"/model", "null", "model", "missing"},
      {"/model", "[]", "model", "JSON object"},
      {"/model/type", R"("WordPiece")", "model: type", "\"WordPiece\" is not supported"},
      {"/model/type", R"("WordLevel")", "model: type", "\"WordLevel\" is not supported"},
      {"/model/dropout", "0.1", "dropout", "not supported"},
      {"/model/unk_token", R"("<unk>")", "unk_token", "not in the vocabulary"},
      {"/model/vocab", "[]", "vocab", "JSON object"},
      {"/model/vocab/!", "2", "vocab", "once"},
      {"/model/vocab/!", "-1", "vocab", "-1"},
      {"/model/vocab/!", "4194304", "vocab", "4194304"},
      {"/model/merges", "{}", "merges", "list"},
      {"/model/merges/0", "3", "merges", "not a pair"},
      {"/model/merges/0", R"("th")", "merges", "not a pair"},
      {"/model/merges/0", R"("t h e")", "merges", "not a pair"},
      {"/model/merges/0", R"("t Q")", "merges", "tQ"},
      {"/added_tokens", "[]", "added_tokens", "no token ends a document"},
      {"/added_tokens/0/content", R"("")", "content", "empty"},
      {"/added_tokens/0/id", "5", "added_tokens[0]: id", "has the id 0"},
      {"/added_tokens/0/content", R"("<eos>")", "added_tokens[0]: id", "is the id of"},
      {"/added_tokens/0/lstrip", "3", "lstrip", "true or false"},
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

// A text has no id for a byte without a token, as in the tokenizers library.
TEST(TokenizerFile, AVocabularyWithoutAByte) {
  const TemporaryDirectory dir;
  json root = written(dir);
  root["model"]["merges"] = json::array();
  root["model"]["vocab"].erase("Z");
  put_file(dir / "t.json", root.dump());
  const Tokenizer tokenizer = read_tokenizer(dir / "t.json");
  EXPECT_EQ(tokenizer.encode("aZb"), tokenizer.encode("ab"));
  EXPECT_TRUE(tokenizer.token(example().encode("Z")[0]).empty());
}

// The same file with fields in another order, as one that only its blanks differ in.
TEST(TokenizerFile, EqualsWhatSaysTheSame) {
  const TemporaryDirectory dir;
  json root = written(dir);
  put_file(dir / "t.json", root.dump(3));
  EXPECT_EQ(read_tokenizer(dir / "t.json"), example());
  root["added_tokens"][0]["rstrip"] = true;
  put_file(dir / "t.json", root.dump(3));
  EXPECT_FALSE(read_tokenizer(dir / "t.json") == example());
}

TEST(TokenizerFile, IsWrittenByteByByteAsItWasRead) {
  const TemporaryDirectory dir;
  json root = written(dir);
  root["added_tokens"].push_back(
      {{"id", 400}, {"content", "<think>"}, {"special", false}, {"normalized", true}});
  root["what others add"] = 3;
  const std::string content = root.dump(2) + "\n\n";
  put_file(dir / "t.json", content);
  write_tokenizer(read_tokenizer(dir / "t.json"), dir / "u.json");
  EXPECT_EQ(read_file(dir / "u.json", Code::kBadCheckpoint), content);
}

}  // namespace
}  // namespace hyperrun
