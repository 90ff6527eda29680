#include "runtime/omni/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "runtime/media/image.h"
#include "runtime/media/sound.h"
#include "tests/media/png_writer.h"
#include "tests/media/signals.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using testing::ElementsAre;

// The samples: pictures of 16 patches, sounds of 10 to 130 frames, samples of both and of text alone.
class Examples : public ::testing::Test {
 protected:
  Examples() : tokenizer_(Tokenizer::train("bird cat dog one two animal ", Tokenizer::kMinVocab)) {
    put_file(folder_ / "p.png", png_of(ramp(16, 16)));
    for (const int frames : {10, 50, 130})
      put_file(folder_ / (std::to_string(frames) + ".wav"),
               encode_wav({16000, sine(500, 16000, static_cast<std::size_t>(frames) * 160, 0.5)}));
    const MediaFile picture{"p.png", ""};
    const auto sound = [](const char* name) { return MediaFile{name, ""}; };
    manifest_ = {folder_.path(),
                 {{"a", "bird", picture, {}, "animal", MediaSplit::kTrain},
                  {"b", "one", {}, sound("10.wav"), "word", MediaSplit::kTrain},
                  {"c", "two", {}, sound("130.wav"), "word", MediaSplit::kTrain},
                  {"d", "cat", picture, sound("50.wav"), "animal", MediaSplit::kTrain},
                  {"e", "dog", {}, {}, "animal", MediaSplit::kTrain}}};
    job_.model.sequence = 96;
    job_.training.batch = 12;
    job_.training.micro_batches = 3;
    job_.media.least = 1, job_.media.most = 3;
    EncoderSpec pictures, sounds;
    pictures.input = kImage, pictures.patch = 4, pictures.tokens = 16, pictures.learns = "category";
    sounds.input = kAudio, sounds.frames = 4, sounds.mel_bins = 20, sounds.tokens = 10;
    encoders_ = {pictures, sounds};
  }

  OmniSplit split() const { return {job_, encoders_, manifest_, tokenizer_}; }

  TemporaryDirectory folder_;
  Tokenizer tokenizer_;
  MediaManifest manifest_;
  Job job_;
  std::vector<EncoderSpec> encoders_;
};

TEST_F(Examples, SoundsAreAsManyItemsAsTheyTake) {
  const OmniSplit data = split();
  EXPECT_EQ(data.items(0, 0), 1);
  EXPECT_EQ(data.items(0, 1), 0);
  EXPECT_EQ(data.items(1, 1), 1);  // 3 vectors
  EXPECT_EQ(data.items(1, 2), 4);  // 33
  EXPECT_EQ(data.items(1, 3), 2);  // 13
  EXPECT_EQ(data.most_items(1), 4 * 3 * 4);
}

// The content of a sequence is read back: vectors of a sample in their order, then its text.
TEST_F(Examples, FeaturesStandBeforeTheirText) {
  const OmniSplit data = split();
  std::set<std::string> seen;
  for (std::int64_t step = 0; step < 8; ++step) {
    double weights = 0;
    for (const OmniMicroBatch& m : data.step(step)) {
      const Samples& s = m.samples;
      ASSERT_EQ(s.sequences(), 4);
      for (std::size_t i = 0; i < s.ids.size(); ++i) weights += static_cast<double>(s.weight[i]);
      for (std::size_t sequence = 0; sequence < 4; ++sequence) {
        std::vector<std::int32_t> told;
        std::vector<OmniItem> last(2);
        std::vector<std::int64_t> next(2, -1);  // row of each encoder
        for (std::size_t i = sequence * 96; i < (sequence + 1) * 96; ++i) {
          for (std::size_t e = 0; e < 2; ++e) {
            const std::int32_t row = s.features[e][i];
            if (row < 0) continue;
            const auto item = static_cast<std::size_t>(row) / static_cast<std::size_t>(encoders_[e].tokens);
            ASSERT_LT(item, m.items[e].size());
            if (row % encoders_[e].tokens == 0 && m.items[e][item].part == 0) next[e] = row;
            EXPECT_EQ(row, next[e]++) << "features in their order";
            last[e] = m.items[e][item];
          }
          if (s.targets[i] < 0) continue;
          if (s.targets[i] == tokenizer_.end_of_text()) {
            seen.insert(tokenizer_.decode(told));
            told.clear();
          } else {
            told.push_back(s.targets[i]);
            EXPECT_EQ(s.ids[i + 1], s.targets[i]) << "what is to be told stands behind";
          }
        }
      }
    }
    EXPECT_NEAR(weights, 1, 1e-5);
  }
  EXPECT_THAT(seen, testing::IsSupersetOf({"animal", "one", "two", "dog"}));
  EXPECT_EQ(seen.count("cat"), 0U) << "of a sample of both the first encoder's text is learnt";
}

TEST_F(Examples, LoadsAreThoseOfTheStep) {
  const OmniSplit data = split();
  bool differ = false;
  for (std::int64_t step = 0; step < 8; ++step) {
    const auto loads = data.loads(step);
    const auto batches = data.step(step);
    ASSERT_EQ(loads.size(), batches.size());
    for (std::size_t m = 0; m < loads.size(); ++m) {
      for (std::size_t e = 0; e < 2; ++e) {
        EXPECT_EQ(loads[m][e], std::ssize(batches[m].items[e]));
        EXPECT_LE(loads[m][e], data.most_items(e));
      }
      differ = differ || loads[m] != loads[0];
    }
  }
  EXPECT_TRUE(differ) << "loads do not vary";
}

TEST_F(Examples, VectorsAreThoseOfTheFilesFilledUpWithSilence) {
  const OmniSplit data = split();
  const std::vector<OmniItem> items{{2, 3}, {2, 0}};
  const InputVectors v = data.vectors(1, items);
  EXPECT_EQ(v.items, 2);
  EXPECT_EQ(v.width, 80);
  const Media media = load_media({manifest_.folder, {manifest_.samples[2]}}, manifest_.samples[2], {4, 20});
  ASSERT_EQ(media.mel.size(), 130U * 20);
  for (std::size_t i = 0; i < 800; ++i) {  // the last stretch: frames from 120 on
    EXPECT_EQ(v.values[i], i < 200 ? media.mel[2400 + i] : 0);
    EXPECT_EQ(v.values[800 + i], media.mel[i]);
  }
}

TEST_F(Examples, QuestionsHaveEveryText) {
  const OmniSplit data = split();
  const std::vector<std::string> labels{"animal", "dog", "one", "two", "x"};
  std::map<std::int32_t, std::set<std::int32_t>> asked;
  for (const OmniQuestion& q : data.questions(1, labels, 3))
    for (std::size_t s = 0; s < q.sample.size(); ++s) {
      asked[q.sample[s]].insert(q.label[s]);
      std::vector<std::int32_t> text;
      for (std::size_t i = s * 96; i < (s + 1) * 96; ++i)
        if (q.batch.samples.targets[i] >= 0) text.push_back(q.batch.samples.targets[i]);
      text.pop_back();
      EXPECT_EQ(tokenizer_.decode(text), labels[static_cast<std::size_t>(q.label[s])]);
    }
  EXPECT_EQ(asked.size(), 3U);
  for (const auto& [sample, texts] : asked) EXPECT_EQ(texts.size(), 5U) << sample;
}

TEST_F(Examples, WhatDoesNotFitIsRefused) {
  encoders_[0].tokens = 4;
  EXPECT_ERROR(split(), Code::kBadValue, "p.png", "16 patches");
  encoders_[0].tokens = 16;
  job_.model.sequence = 30;
  EXPECT_ERROR(split(), Code::kBadValue, "model.sequence", "positions");
}

}  // namespace
}  // namespace hyperrun
