#include "runtime/model/text/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

TEST(Corpus, AFileIsReadAsItIs) {
  const TemporaryDirectory dir;
  const std::string text("line\r\n\0\u00e9 end", 13);
  put_file(dir / "book.txt", text);
  EXPECT_EQ(read_corpus(dir / "book.txt"), text);
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
  put_file(dir / "notes.json", "{}");
  std::filesystem::create_directory(dir / "sub.txt");
  EXPECT_EQ(read_corpus(dir.path()),
            "chapter_1.txt<|endoftext|>chapter_01b.txt<|endoftext|>chapter_9.txt<|endoftext|>chapter_10.txt"
            "<|endoftext|>end.txt");
}

TEST(Corpus, Errors) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(read_corpus(dir / "absent.txt"), Code::kMissingFile, "absent.txt", "no such file");
  EXPECT_ERROR(read_corpus(dir.path()), Code::kBadCorpus, dir.path().string(), "no .txt file");
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
