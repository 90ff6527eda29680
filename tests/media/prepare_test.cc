#include "runtime/media/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/media/emoji.h"
#include "runtime/media/manifest.h"
#include "runtime/media/sound.h"
#include "tests/media/png_writer.h"
#include "tests/media/signals.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

constexpr const char* kEmoji = R"([
  {"name": "FROG FACE", "image": "1f438.png", "category": "Animals & Nature", "has_img_google": true},
  {"name": "NOT DRAWN", "image": "1f439.png", "category": "Animals & Nature", "has_img_google": false},
  {"name": "Key", "image": "1f511.png", "category": "Objects", "has_img_google": true}])";

const PrepareProgress kSilent = [](std::size_t, std::size_t) {};

TEST(Emoji, AreSamplesWithNamesInLowerCase) {
  const auto samples = emoji_samples(kEmoji, "emoji.json");
  ASSERT_THAT(samples, ::testing::SizeIs(2));
  EXPECT_EQ(samples[0].id, "1f438");
  EXPECT_EQ(samples[0].text, "frog face");
  EXPECT_EQ(samples[0].image.path, "1f438.png");
  EXPECT_EQ(samples[0].category, "Animals & Nature");
  EXPECT_EQ(samples[1].text, "key");
}

TEST(Emoji, OtherFilesAreRefused) {
  for (const std::string text :
       {"", "{", "[1]", "[{}]", R"([{"has_img_google": true, "image": "../../x.png"}])",
        R"([{"has_img_google": true, "image": "x.gif", "name": "", "category": ""}])"})
    EXPECT_ERROR(emoji_samples(text, "emoji.json"), Code::kBadCorpus, "emoji.json", "");
}

// One in ten of many ids, within four standard deviations (30 each), and always the same ones.
TEST(HeldBack, OneInTen) {
  int held = 0;
  for (int i = 0; i < 10000; ++i) held += held_back("id " + std::to_string(i)) ? 1 : 0;
  EXPECT_NEAR(held, 1000, 120);
}

TEST(Prepare, EmojiBecomeAFolder) {
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "package/img/google/64");
  put_file(folder / "package/emoji.json", kEmoji);
  put_file(folder / "package/img/google/64/1f438.png", png_of(ramp(64, 64)));
  EXPECT_ERROR(prepare_emoji(folder / "package", folder / "out", kSilent), Code::kMissingFile, "1f511.png",
               "");
  EXPECT_FALSE(std::filesystem::exists(folder / "out/manifest.jsonl"));

  put_file(folder / "package/img/google/64/1f511.png", png_of(ramp(32, 32)));
  std::size_t told = 0;
  prepare_emoji(folder / "package", folder / "out", [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 2u);
    EXPECT_EQ(done, ++told);
  });
  EXPECT_EQ(told, 2u);
  const MediaManifest manifest = read_manifest(folder / "out/manifest.jsonl");
  ASSERT_THAT(manifest.samples, ::testing::SizeIs(2));
  EXPECT_NE(manifest.samples[0].image.xxh3, manifest.samples[1].image.xxh3);
  check_files(manifest);
}

TEST(Prepare, SpeechBecomesAFolderAtOneRate) {
  const TemporaryDirectory folder;
  put_file(folder / "a.wav", encode_wav({22050, sine(300, 22050, 22050, 0.5)}));
  put_file(folder / "b.wav", encode_wav({8000, sine(300, 8000, 4000, 0.5)}));
  const std::string a = (folder / "a.wav").string(), b = (folder / "b.wav").string();
  put_file(folder / "list",
           "one\tone word\tword\theld-back\t" + a + "\ntwo\ttwo\tprompt\tby-id\t" + b + "\n");
  prepare_speech(folder / "list", folder / "out", kSilent);
  const MediaManifest manifest = read_manifest(folder / "out/manifest.jsonl");
  ASSERT_THAT(manifest.samples, ::testing::SizeIs(2));
  check_files(manifest);
  EXPECT_EQ(manifest.samples[0].text, "one word");
  EXPECT_EQ(manifest.samples[0].split, MediaSplit::kHeldBack);
  EXPECT_EQ(manifest.samples[1].split, held_back("two") ? MediaSplit::kHeldBack : MediaSplit::kTrain);
  for (const auto& [file, samples] : {std::pair{"one.wav", 16000}, std::pair{"two.wav", 8000}}) {
    const SoundSize size = wav_size(content(folder / "out" / file), file);
    EXPECT_EQ(size.rate, 16000);
    EXPECT_EQ(size.samples, samples);
  }
}

TEST(Prepare, ListsAreChecked) {
  const TemporaryDirectory folder;
  const auto refuse = [&](const std::string& line, const std::string& cause) {
    put_file(folder / "list", "\n" + line);
    EXPECT_ERROR(prepare_speech(folder / "list", folder / "out", kSilent), Code::kBadValue, "list:2", cause);
  };
  refuse("a\tb\tc\ttrain", "five fields");
  refuse("a\t\tc\ttrain\tx.wav", "five fields");
  refuse("a/b\tb\tc\ttrain\tx.wav", "cannot be the name");
  refuse("a\tb\tc\ttest\tx.wav", "\"test\"");
  put_file(folder / "list", "");
  EXPECT_ERROR(prepare_speech(folder / "list", folder / "out", kSilent), Code::kBadCorpus, "list", "empty");
}

TEST(Prepare, ManifestsAreJoined) {
  const TemporaryDirectory folder;
  const MediaFile picture{"p.png", "00000000000000aa"}, sound{"deep/s.wav", ""};
  const MediaSample a{"a", "frog", picture, {}, "c", MediaSplit::kTrain};
  const MediaSample b{"b", "cat", {}, sound, "c", MediaSplit::kHeldBack};
  write_manifest(folder / "one/m.jsonl", {a});
  write_manifest(folder / "two/m.jsonl", {b});
  join_manifests({folder / "one/m.jsonl", folder / "two/m.jsonl"}, folder / "all.jsonl");
  const MediaManifest all = read_manifest(folder / "all.jsonl");
  MediaSample moved_a = a, moved_b = b;
  moved_a.image.path = "one/p.png", moved_b.audio.path = "two/deep/s.wav";
  EXPECT_THAT(all.samples, ::testing::ElementsAre(moved_a, moved_b));
  EXPECT_EQ(all.folder / all.samples[0].image.path, folder / "one/p.png");

  EXPECT_ERROR(join_manifests({folder / "one/m.jsonl", folder / "one/m.jsonl"}, folder / "twice.jsonl"),
               Code::kBadValue, "twice.jsonl:2", "that of line 1");
  EXPECT_ERROR(join_manifests({folder / "one/m.jsonl"}, folder / "two/up.jsonl"), Code::kBadValue,
               "up.jsonl:1", "leaves");
  EXPECT_FALSE(std::filesystem::exists(folder / "twice.jsonl"));
}

}  // namespace
}  // namespace hyperrun
