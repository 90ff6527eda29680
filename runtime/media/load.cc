#include "runtime/media/load.h"

#include <fmt/core.h>

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/media/image.h"
#include "runtime/media/log_mel.h"
#include "runtime/media/resample.h"
#include "runtime/media/sound.h"

namespace hyperrun {
namespace {

std::string place_of(const MediaManifest& manifest, const MediaFile& file) {
  return (manifest.folder / file.path).string();
}

std::int64_t require_frames(SoundSize size, const std::string& place) {
  const std::int64_t samples = resampled(size, kMelRate);
  if (samples >= kMelHop) return mel_frames(samples);
  throw Error(Code::kBadCorpus,
              fmt::format("too short for one frame: {} samples at {} Hz", size.samples, size.rate))
      .at(place)
      .legal("10 ms or more")
      .fix("leave the sample out, or give a longer sound");
}

MediaUnits units_of(const MediaManifest& manifest, const MediaSample& sample, MediaShape shape) {
  MediaUnits units;
  if (!sample.image.path.empty()) {
    const std::string place = place_of(manifest, sample.image);
    units.patches =
        patch_count(png_size(read_sample_file(manifest, sample.image), place), shape.patch, place);
  }
  if (!sample.audio.path.empty()) {
    const std::string place = place_of(manifest, sample.audio);
    units.frames = require_frames(wav_size(read_sample_file(manifest, sample.audio), place), place);
  }
  return units;
}

}  // namespace

Media load_media(const MediaManifest& manifest, const MediaSample& sample, MediaShape shape) {
  Media media;
  if (!sample.image.path.empty()) {
    const std::string place = place_of(manifest, sample.image);
    const Image image = decode_png(read_sample_file(manifest, sample.image), place);
    media.units.patches = patch_count(image.size, shape.patch, place);
    media.patches = patches(image, shape.patch, place);
  }
  if (!sample.audio.path.empty()) {
    const std::string place = place_of(manifest, sample.audio);
    const Sound sound = decode_wav(read_sample_file(manifest, sample.audio), place);
    media.units.frames = require_frames({std::ssize(sound.samples), sound.rate}, place);
    media.mel = log_mel(resample(sound, kMelRate).samples, shape.mel_bins);
  }
  return media;
}

std::vector<MediaUnits> measure_media(const MediaManifest& manifest, MediaShape shape) {
  std::vector<MediaUnits> units(manifest.samples.size());
  parallel_for(units.size(),
               [&](std::size_t i) { units[i] = units_of(manifest, manifest.samples[i], shape); });
  return units;
}

}  // namespace hyperrun
