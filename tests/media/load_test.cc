#include "runtime/media/load.h"

#include <gtest/gtest.h>

#include "runtime/media/image.h"
#include "runtime/media/log_mel.h"
#include "runtime/media/resample.h"
#include "runtime/media/sound.h"
#include "tests/media/png_writer.h"
#include "tests/media/signals.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

// The manifest has a sample with a picture of 32 x 16 and a sound of 3000 samples at 8 kHz, one with each of
// them, and one of text alone.
class Load : public ::testing::Test {
 protected:
  Load() {
    put_file(folder_ / "p.png", png_of(ramp(32, 16)));
    put_file(folder_ / "s.wav", encode_wav({8000, sine(500, 8000, 3000, 0.5)}));
    const MediaFile picture{"p.png", ""}, sound{"s.wav", ""};
    manifest_ = {folder_.path(),
                 {{"both", "t", picture, sound, "c", MediaSplit::kTrain},
                  {"picture", "t", picture, {}, "c", MediaSplit::kTrain},
                  {"sound", "t", {}, sound, "c", MediaSplit::kTrain},
                  {"text", "t", {}, {}, "c", MediaSplit::kTrain}}};
  }

  TemporaryDirectory folder_;
  MediaManifest manifest_;
};

TEST_F(Load, GivesPatchesAndFrames) {
  const Media media = load_media(manifest_, manifest_.samples[0], {.patch = 8, .mel_bins = 40});
  EXPECT_EQ(media.units, (MediaUnits{8, 37}));  // 32 * 16 / 64; 6000 samples at 16 kHz are 37 hops and a half
  EXPECT_EQ(media.patches, patches(decode_png(png_of(ramp(32, 16)), ""), 8, ""));
  const Sound sound = decode_wav(content(folder_ / "s.wav"), "");
  EXPECT_EQ(media.mel, log_mel(resample(sound, 16000).samples, 40));
  EXPECT_EQ(media.mel.size(), 37u * 40);
}

TEST_F(Load, MeasuresWhatItLoads) {
  const MediaShape shape{.patch = 4, .mel_bins = 80};
  const std::vector<MediaUnits> units = measure_media(manifest_, shape);
  ASSERT_EQ(units.size(), 4u);
  for (std::size_t i = 0; i < units.size(); ++i)
    EXPECT_EQ(units[i], load_media(manifest_, manifest_.samples[i], shape).units);
  EXPECT_EQ(units[1], (MediaUnits{32, 0}));
  EXPECT_EQ(units[2], (MediaUnits{0, 37}));
  EXPECT_EQ(units[3], MediaUnits{});
}

TEST_F(Load, NamesTheFileThatIsOfNoUse) {
  EXPECT_ERROR(measure_media(manifest_, {.patch = 5}), Code::kBadValue, "p.png", "32 x 16");
  put_file(folder_ / "s.wav", encode_wav({16000, std::vector<float>(159)}));
  EXPECT_ERROR(measure_media(manifest_, {.patch = 8}), Code::kBadCorpus, "s.wav", "too short for one frame");
  EXPECT_ERROR(load_media(manifest_, manifest_.samples[2], {}), Code::kBadCorpus, "s.wav", "too short");
  std::filesystem::remove(folder_ / "p.png");
  EXPECT_ERROR(load_media(manifest_, manifest_.samples[1], {}), Code::kMissingFile, "p.png", "no such file");
}

}  // namespace
}  // namespace hyperrun
