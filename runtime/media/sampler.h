// Chooses the samples of a step by a pure function of (seed, step, index in the global batch), like the
// sampler of texts (runtime/model/text/sampler.h). It knows neither devices nor layout, so every encoder and
// every rank asks for the part that it holds, all agree, and nothing has to be saved to resume.
//
// A row of the batch is an example: `least` to `most` samples of the manifest, a number drawn anew for each
// example. So the numbers of patches and of frames differ, as in the batches of an omni-modal model:
//
//   example 0   frog (64 patches)  "cat" (51 frames)                  64 patches   51 frames
//   example 1   "one" (38 frames)                                      0 patches   38 frames
//   example 2   key (64)  bell (64)  moon (64)                       192 patches    0 frames
//
// An epoch is a newly shuffled order of all samples. Each example has `most` places in it and uses the first
// ones. So a sample comes once in each epoch if least = most, else at most once.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/media/load.h"

namespace hyperrun {

enum class MediaOrder : std::uint8_t {
  kShuffled,
  kSequential,  // for evaluation: in the manifest's order
};

struct MediaSampling {
  std::int32_t batch = 1;            // examples of a step
  std::int32_t least = 1, most = 1;  // samples of an example; 1 <= least <= most
  std::uint64_t seed = 0;
  MediaOrder order = MediaOrder::kShuffled;
};

struct MediaExample {
  std::vector<std::int32_t> samples;  // indices into the manifest
  MediaUnits units;                   // sum over all its samples

  bool operator==(const MediaExample&) const = default;
};

class MediaSampler {
 public:
  // `units` has an entry for each sample (measure_media in load.h), at least one.
  MediaSampler(std::vector<MediaUnits> units, MediaSampling sampling);

  // The example `index` of a step; 0 <= step, 0 <= index < batch.
  MediaExample example(std::int64_t step, std::int64_t index) const;
  std::vector<MediaExample> batch(std::int64_t step) const;

 private:
  std::int32_t sample_at(std::int64_t place) const;

  std::vector<MediaUnits> units_;
  MediaSampling sampling_;
};

}  // namespace hyperrun
