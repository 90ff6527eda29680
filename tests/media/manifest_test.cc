#include "runtime/media/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/media/file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kFrog =
    R"({"id": "1f438", "text": "frog face", "image": "a/1f438.png", "image_xxh3": "0123456789abcdef", "category": "Animals", "split": "train"})";
constexpr const char* kCat =
    R"({"id": "cat", "text": "cat", "audio": "cat.wav", "category": "word", "split": "held-back"})";

std::vector<MediaSample> parse(const std::string& content) { return parse_manifest(content, "m.jsonl"); }

// A complete line, with `more` appended.
std::string line_with(const std::string& more) {
  return R"({"id": "a", "text": "t", "category": "c", "split": "train")" + more + "}";
}

TEST(Manifest, HasASampleALine) {
  const auto samples = parse(std::string(kFrog) + "\n\n" + kCat + "\r\n");
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(
      samples[0],
      (MediaSample{
          "1f438", "frog face", {"a/1f438.png", "0123456789abcdef"}, {}, "Animals", MediaSplit::kTrain}));
  EXPECT_EQ(samples[1], (MediaSample{"cat", "cat", {}, {"cat.wav", ""}, "word", MediaSplit::kHeldBack}));
}

TEST(Manifest, WhatIsWrittenIsRead) {
  const std::vector<MediaSample> samples = {{"\"quoted\" \\ id",
                                             "two\nlines\tand \xc3\xa9 \xf0\x9f\x90\xb8",
                                             {"i.png", "00000000000000ff"},
                                             {"s.wav", ""},
                                             "c",
                                             MediaSplit::kHeldBack},
                                            {"text alone", "t", {}, {}, "c", MediaSplit::kTrain}};
  const TemporaryDirectory folder;
  write_manifest(folder / "deep/er/m.jsonl", samples);
  const MediaManifest read = read_manifest(folder / "deep/er/m.jsonl");
  EXPECT_EQ(read.samples, samples);
  EXPECT_EQ(read.folder, folder / "deep/er");
  EXPECT_THAT(only(read, MediaSplit::kTrain).samples, ::testing::ElementsAre(samples[1]));
  EXPECT_THAT(only(read, MediaSplit::kHeldBack).samples, ::testing::ElementsAre(samples[0]));
}

struct Bad {
  std::string line;
  Code code;
  std::string cause, legal;
};

TEST(Manifest, EachFieldIsChecked) {
  const std::vector<Bad> all = {
      {"{", Code::kSyntax, "no JSON", "\"id\""},
      {"[1]", Code::kSyntax, "no object", "\"id\""},
      {"{} {}", Code::kSyntax, "no JSON", "\"id\""},
      {"{\"id\": \"\xff\"}", Code::kSyntax, "no JSON", ""},
      {line_with(R"(, "text": "again")"), Code::kSyntax, "\"text\" is there twice", ""},
      {line_with(R"(, "audoi": "x.wav")"), Code::kUnknownField, "audoi",
       "id, text, image, image_xxh3, audio"},
      {R"({"text": "t", "category": "c", "split": "train"})", Code::kMissingField, "no \"id\"", "id, text"},
      {R"({"id": "a", "category": "c", "split": "train"})", Code::kMissingField, "no \"text\"", "id, text"},
      {R"({"id": "a", "text": "t", "split": "train"})", Code::kMissingField, "no \"category\"", "id, text"},
      {R"({"id": "a", "text": "t", "category": "c"})", Code::kMissingField, "no \"split\"", "id, text"},
      {R"({"id": 3, "text": "t", "category": "c", "split": "train"})", Code::kBadValue, "no text but number",
       ""},
      {R"({"id": "a", "text": "", "category": "c", "split": "train"})", Code::kBadValue, "0 bytes", "1 to"},
      {R"({"id": "a\nb", "text": "t", "category": "c", "split": "train"})", Code::kBadValue, "control",
       "without"},
      {R"({"id": "a", "text": "t\u0000", "category": "c", "split": "train"})", Code::kBadValue, "control",
       ""},
      {R"({"id": "a", "text": "t", "category": "c", "split": "test"})", Code::kBadValue, "\"test\"",
       "train, held-back"},
      {line_with(R"(, "image": "../x.png")"), Code::kBadValue, "leaves", "without .."},
      {line_with(R"(, "audio": "/x.wav")"), Code::kBadValue, "leaves", "below"},
      {line_with(R"(, "image": null)"), Code::kBadValue, "no text but null", ""},
      {line_with(R"(, "audio_xxh3": "0123456789abcdef")"), Code::kBadValue, "without \"audio\"", "both"},
      {line_with(R"(, "image": "x.png", "image_xxh3": "0123456789ABCDEF")"), Code::kBadValue, "image_xxh3",
       "16 hexadecimal"},
      {kFrog, Code::kBadValue, "that of line 1", "once"},
  };
  for (const Bad& bad : all) {
    const std::string content = std::string(kFrog) + "\n" + bad.line + "\n" + kCat + "\n";
    EXPECT_ERROR(parse(content), bad.code, "m.jsonl:2", bad.cause);
    const Error error = error_of([&] { parse(content); });
    EXPECT_THAT(error.legal(), HasSubstr(bad.legal)) << error.what();
    EXPECT_FALSE(error.remedy().empty());
  }
}

TEST(Manifest, WithoutASampleIsRefused) {
  EXPECT_ERROR(parse(""), Code::kBadCorpus, "m.jsonl", "no sample");
  EXPECT_ERROR(parse("\n \n"), Code::kBadCorpus, "m.jsonl", "no sample");
  EXPECT_ERROR(read_manifest("/nowhere/m.jsonl"), Code::kMissingFile, "/nowhere/m.jsonl", "no such file");
  EXPECT_ERROR(read_manifest("/"), Code::kBadCorpus, "/", "regular");
}

// The specification of XXH3 gives this number for no bytes and seed 0.
TEST(Hash, IsXxh3) { EXPECT_EQ(xxh3(""), "2d06800538d394c2"); }

TEST(Files, AreComparedWithTheirHashes) {
  const TemporaryDirectory folder;
  put_file(folder / "a.png", "picture");
  MediaManifest manifest{folder.path(),
                         {{"a", "t", {"a.png", xxh3("picture")}, {}, "c", MediaSplit::kTrain}}};
  EXPECT_EQ(read_sample_file(manifest, manifest.samples[0].image), "picture");
  check_files(manifest);
  put_file(folder / "a.png", "Picture");
  EXPECT_ERROR(check_files(manifest), Code::kBadCorpus, "a.png", "another file than the manifest's");
  manifest.samples[0].image.xxh3.clear();
  check_files(manifest);
  std::filesystem::remove(folder / "a.png");
  EXPECT_ERROR(check_files(manifest), Code::kMissingFile, "a.png", "no such file");
}

TEST(Files, ThatCannotBeWrittenLeaveNothing) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "");
  EXPECT_ERROR(write_media_file(folder / "file/below", "x"), Code::kUnwritable, "below", "cannot create");
  std::filesystem::create_directories(folder / "taken/full");
  EXPECT_ERROR(write_media_file(folder / "taken", "x"), Code::kUnwritable, "taken", "cannot put in place");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(Manifest, DamageIsAnErrorNeverACrash) {
  const std::string content = std::string(kFrog) + "\n" + kCat + "\n";
  std::mt19937 random(6);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = content;
    for (int k = 0; k < 1 + i % 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 5 == 0) damaged.resize(random() % damaged.size());
    try {
      parse(damaged);
      ++read;
    } catch (const Error& e) {
      EXPECT_NE(e.code(), Code::kInternal) << e.what();
      EXPECT_THAT(e.place(), HasSubstr("m.jsonl"));
    }
  }
  EXPECT_GT(read, 0);  // a letter that became another one is no damage
}

TEST(Manifest, DeepNestingIsAnErrorNeverACrash) {
  EXPECT_ERROR(parse(std::string(300000, '[')), Code::kSyntax, "m.jsonl:1", "no JSON");
  EXPECT_ERROR(parse(line_with(R"(, "image": )" + std::string(100000, '[') + std::string(100000, ']'))),
               Code::kBadValue, "m.jsonl:1", "array");
}

}  // namespace
}  // namespace hyperrun
