// What encoders get of a sample: patches of its picture, log-mel frames of its sound.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/media/manifest.h"

namespace hyperrun {

struct MediaShape {
  std::int32_t patch = 16;     // pixels along each side of a patch; 1 or more
  std::int32_t mel_bins = 80;  // 1 to kMostMelBins
};

// How much that is; 0 of what the sample does not have.
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

// Both read the files of the sample; places of errors are the files. kMissingFile, kBadCorpus: as
// read_sample_file, decode_png and decode_wav say; also kBadCorpus for a sound of less than one frame (10
// ms). kBadValue: patches that do not cover the picture.
Media load_media(const MediaManifest& manifest, const MediaSample& sample, MediaShape shape);

// The units of each sample in order, by the heads of the files: nothing is decoded.
std::vector<MediaUnits> measure_media(const MediaManifest& manifest, MediaShape shape);

}  // namespace hyperrun
