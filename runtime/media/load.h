// Loads the input of encoders from a sample: patches of its picture, log-mel frames of its sound.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/media/manifest.h"

namespace hyperrun {

struct MediaShape {
  std::int32_t patch = 16;     // pixels along each side of a patch; 1 or more
  std::int32_t mel_bins = 80;  // 1 to kMostMelBins
};

// The number of patches and of frames of a sample; 0 if it has no picture, or no sound.
struct MediaUnits {
  std::int64_t patches = 0, frames = 0;

  bool operator==(const MediaUnits&) const = default;
  MediaUnits& operator+=(const MediaUnits& other) {
    patches += other.patches, frames += other.frames;
    return *this;
  }
};

struct Media {
  MediaUnits units;
  std::vector<float> patches;  // [units.patches, 3 * patch * patch] (image.h)
  std::vector<float> mel;      // [units.frames, mel_bins] (log_mel.h), whatever rate the file has
};

// Loads the files of a sample; the places of errors are the files. Throws the errors of read_sample_file,
// decode_png and decode_wav, kBadCorpus for a sound of less than one frame (10 ms), and kBadValue for patches
// that do not cover the picture.
Media load_media(const MediaManifest& manifest, const MediaSample& sample, MediaShape shape);

// The units of each sample in order, read from the heads of the files without decoding them.
std::vector<MediaUnits> measure_media(const MediaManifest& manifest, MediaShape shape);

}  // namespace hyperrun
