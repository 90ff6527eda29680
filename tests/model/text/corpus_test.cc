#include "runtime/model/text/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Corpus, AFileIsReadAsItIs) {
  const TemporaryDirectory dir;
  const std::string text("line\n\r \0\u00e9 end", 14);
  put_file(dir / "book.rst", text);  // any name will do
  EXPECT_EQ(read_corpus(dir / "book.rst").text, text);
  EXPECT_THAT(read_corpus(dir / "book.rst").notes, IsEmpty());
}

TEST(Corpus, LineEndsOfWindowsAndTheMarkAreLeftOutAndTold) {
  const TemporaryDirectory dir;
  put_file(dir / "book.txt", "\xEF\xBB\xBFone\r\ntwo\r\n\rthree");
  const Corpus corpus = read_corpus(dir / "book.txt");
  EXPECT_EQ(corpus.text, "one\ntwo\n\rthree");
  EXPECT_THAT(corpus.notes, ElementsAre("1 file with line ends of Windows, which are read as those of Unix",
                                        "1 file with a byte order mark, which is left out"));
}

TEST(Corpus, JsonLinesAreTheirTexts) {
  const TemporaryDirectory dir;
  put_file(dir / "c.jsonl",
           "\xEF\xBB\xBF{\"text\": \"a\\r\\nb\", \"n\": 1}\r\n\n{\"text\": \"\"}\n{\"text\": "
           "null}\n{\"text\": \"c\"}");
  Corpus corpus = read_corpus(dir / "c.jsonl");
  EXPECT_EQ(corpus.text, "a\r\nb<|endoftext|>c");  // line ends within a string are its author's
  EXPECT_THAT(corpus.notes,
              ElementsAre("2 documents from JSON (field \"text\")", "left out: 2 documents without text",
                          "1 file with a byte order mark, which is left out"));
  put_file(dir / "d.ndjson", "{\"content\": \"d\"}\n");
  corpus = read_corpus(dir / "d.ndjson", "|");
  EXPECT_EQ(corpus.text, "d");
  EXPECT_THAT(corpus.notes, ElementsAre("1 documents from JSON (field \"content\")"));
}

TEST(Corpus, JsonIsAListOfObjectsOrStrings) {
  const TemporaryDirectory dir;
  put_file(dir / "c.json", R"([{"text": "a"}, {"text": "b"}])");
  EXPECT_EQ(read_corpus(dir / "c.json", "|").text, "a|b");
  put_file(dir / "c.json", R"(["a", "", "b"])");
  EXPECT_EQ(read_corpus(dir / "c.json", "|").text, "a|b");
  put_file(dir / "c.json", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");  // JSON lines by another name
  EXPECT_EQ(read_corpus(dir / "c.json", "|").text, "a|b");
}

TEST(Corpus, JsonWithoutTextsIsRefusedWithItsPlace) {
  const TemporaryDirectory dir;
  for (const auto& [content, place, cause] :
       {std::tuple{"{\"text\": \"a\"}\nnonsense\n", ":2", "not valid JSON"},
        {"{\"body\": \"a\", \"id\": 3}\n", ":1", "no text; its fields are body, id"},
        {"{\"text\": \"a\"}\n{\"content\": \"b\"}\n", ":2", "no text"},
        {"{\"text\": [1]}\n", ":1: text", "is no text but array"},
        {"3\n", ":1", "is no text but number"}}) {
    put_file(dir / "c.jsonl", content);
    EXPECT_ERROR(read_corpus(dir / "c.jsonl"), Code::kBadCorpus, std::string("c.jsonl") + place, cause);
  }
  put_file(dir / "c.json", "[{\"text\": \"a\"}, 3]");
  EXPECT_ERROR(read_corpus(dir / "c.json"), Code::kBadCorpus, "c.json[1]", "is no text but number");
}

// Made by gzip -n of "alpha\n" and of "beta\n": a file has one member or several.
const std::string kAlpha(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xcc\x29\xc8\x48\xe4\x02\x00\xec\x6e\x60\x9f\x06\x00\x00"
    "\x00",
    26);
const std::string kBeta(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4a\x2d\x49\xe4\x02\x00\x75\xa7\xe3\xe6\x05\x00\x00\x00",
    25);

TEST(Corpus, GzipIsDecompressed) {
  const TemporaryDirectory dir;
  put_file(dir / "a.txt.gz", kAlpha + kBeta);
  EXPECT_EQ(read_corpus(dir / "a.txt.gz").text, "alpha\nbeta\n");
  put_file(dir / "cut.txt.gz", kAlpha.substr(0, 14));
  EXPECT_ERROR(read_corpus(dir / "cut.txt.gz"), Code::kBadCorpus, "cut.txt.gz", "ends too early");
  std::string damaged = kAlpha;
  damaged[20] = 'x';
  put_file(dir / "bad.txt.gz", damaged);
  EXPECT_ERROR(read_corpus(dir / "bad.txt.gz"), Code::kBadCorpus, "bad.txt.gz", "is damaged");
}

TEST(Corpus, OtherFormatsAreRefusedByName) {
  const TemporaryDirectory dir;
  for (const auto& [content, cause, fix] :
       {std::tuple{std::string("PAR1 and so on"), "a file of Parquet", "read_parquet"},
        {std::string("\x28\xb5\x2f\xfd zstd"), "a file of zstd", "zstd -d"},
        {std::string("PK\3\4zip"), "a file of zip", "unzip"},
        {std::string("\xFF\xFEh\0i\0", 6), "UTF-16", "iconv -f UTF-16"},
        {std::string("h\0e\0l\0l\0o\0", 10), "of UTF-16", "iconv"},
        {std::string("\1\0\2\0\3\0", 6), "a binary file", "not tokens"},
        {std::string("abcdefgh\0\xC3\xC3", 11), "a binary file", "the text itself"}}) {
    put_file(dir / "corpus.bin", content);
    const Error e = error_of([&] { read_corpus(dir / "corpus.bin"); });
    EXPECT_EQ(e.code(), Code::kBadCorpus) << cause;
    EXPECT_THAT(e.cause(), HasSubstr(cause));
    EXPECT_THAT(e.remedy(), HasSubstr(fix));
  }
}

TEST(Corpus, FoldersInFoldersAndWhatIsLeftOut) {
  const TemporaryDirectory dir;
  std::filesystem::create_directories(dir / "b/c");
  std::filesystem::create_directories(dir / ".cache");
  std::filesystem::create_directory_symlink(dir.path(), dir / "b/loop");
  for (const char* name : {"b.txt", "b/10.txt", "b/9.txt", "b/c/1.txt", "a.txt", "x.py", "y.py", "README.md"})
    put_file(dir / name, name);
  put_file(dir / "z.jsonl", "\"last\"\n");
  put_file(dir / "empty.txt", "");
  put_file(dir / "bytes.txt", std::string("a\0\xC3\xC3", 4));
  put_file(dir / "none", "x");
  const Corpus corpus = read_corpus(dir.path(), "|");
  EXPECT_EQ(corpus.text, "a.txt|b/9.txt|b/10.txt|b/c/1.txt|b.txt|last");
  EXPECT_THAT(
      corpus.notes,
      ElementsAre("1 documents from JSON (strings)",
                  "left out: files 1 .md, 2 .py, 1 binary, 1 empty, 1 hidden, 1 without an extension"));
}

TEST(Corpus, WhatIsNotUtf8IsRefusedWithItsPlace) {
  const TemporaryDirectory dir;
  put_file(dir / "book.txt", "caf\xE9 au lait");
  try {
    read_corpus(dir / "book.txt");
    FAIL() << "Latin-1 was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadCorpus);
    EXPECT_NE(e.cause().find("byte 3 "), std::string::npos) << e.cause();
  }
}

TEST(Utf8, InvalidBytesAreReplaced) {
  EXPECT_EQ(valid_utf8("a\xFF\u00e9\xC3"), "a\uFFFD\u00e9\uFFFD");
  EXPECT_EQ(valid_utf8("plain"), "plain");
}

TEST(Corpus, ADirectoryIsReadInNaturalOrder) {
  const TemporaryDirectory dir;
  for (const char* name : {"chapter_10.txt", "chapter_9.txt", "chapter_1.txt", "chapter_01b.txt", "end.txt"})
    put_file(dir / name, name);
  std::filesystem::create_directory(dir / "sub.txt");
  EXPECT_EQ(read_corpus(dir.path()).text,
            "chapter_1.txt<|endoftext|>chapter_01b.txt<|endoftext|>chapter_9.txt<|endoftext|>chapter_10.txt"
            "<|endoftext|>end.txt");
}

TEST(Corpus, Errors) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(read_corpus(dir / "absent.txt"), Code::kMissingFile, "absent.txt", "no such file");
  EXPECT_ERROR(read_corpus(dir.path()), Code::kBadCorpus, dir.path().string(), "has no text");
  put_file(dir / "empty.txt", "");
  EXPECT_ERROR(read_corpus(dir / "empty.txt"), Code::kBadCorpus, "empty.txt", "empty");
  EXPECT_ERROR(read_corpus("/dev/null"), Code::kBadCorpus, "/dev/null", "not a regular file");
}

TEST(Corpus, UnreadableFile) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TemporaryDirectory dir;
  put_file(dir / "secret.txt", "x");
  std::filesystem::permissions(dir / "secret.txt", std::filesystem::perms::none);
  EXPECT_ERROR(read_corpus(dir / "secret.txt"), Code::kBadCorpus, "secret.txt", "Permission denied");
}

std::vector<std::int32_t> numbers(std::size_t n) {
  std::vector<std::int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(RequireSample, TooShortSaysWhatItHasAndNeeds) {
  require_sample(numbers(9), 8, "book.txt");
  EXPECT_ERROR(require_sample(numbers(8), 8, "book.txt"), Code::kBadCorpus, "book.txt",
               "it has 8 tokens, one sample of sequence 8 needs 9");
}

}  // namespace
}  // namespace hyperrun
