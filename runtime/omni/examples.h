// The training examples of a job with encoders (docs/omni.md). For each micro-batch of the text model:
// tokens, and the positions of features between them. For each encoder: the items that it reads for that
// micro-batch.
//
//   an example   | picture: 16 features | "bird" end | sound: 11 features | "one" end | nothing ...
//   is to say                          b i r d end                      o n e end
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/ir/input_vectors.h"
#include "runtime/ir/job.h"
#include "runtime/ir/samples.h"
#include "runtime/media/load.h"
#include "runtime/media/sampler.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

// An item is an encoder's input: a picture, or a stretch of a sound.
struct OmniItem {
  std::int32_t sample = 0;  // number of the sample in the split
  std::int32_t part = 0;    // number of the stretch in its sound
  bool operator==(const OmniItem&) const = default;
};

struct OmniMicroBatch {
  Samples samples;                           // its features are rows of the items below
  std::vector<std::vector<OmniItem>> items;  // by encoder
};

// Held-back samples, each with all texts that it could have. Sequence s is of sample `sample[s]` with text
// `label[s]`.
struct OmniQuestion {
  OmniMicroBatch batch;
  std::vector<std::int32_t> sample, label;
};

// One split of a manifest, as the encoders and the text model see it.
class OmniSplit {
 public:
  // `encoders` are the job's, in its order. Throws kBadValue for a picture with another number of patches
  // than its encoder takes, or for a sample that is longer than a sequence.
  OmniSplit(const Job& job, std::vector<EncoderSpec> encoders, MediaManifest manifest,
            const Tokenizer& tokenizer);

  std::size_t size() const { return manifest_.samples.size(); }
  // Number of the sample's items for the encoder, read from the files' headers.
  std::int64_t items(std::size_t encoder, std::size_t sample) const;
  // The most items of any micro-batch of the job.
  std::int64_t most_items(std::size_t encoder) const;

  // The micro-batches of a step. They depend on the job's seed and the step alone.
  std::vector<OmniMicroBatch> step(std::int64_t step) const;
  // Numbers of items in these, by micro-batch and encoder. Nothing is decoded.
  std::vector<std::vector<std::int64_t>> loads(std::int64_t step) const;

  // Questions about `most` of the encoder's samples, evenly chosen, each with every one of `labels`, in
  // micro-batches of the job's size.
  std::vector<OmniQuestion> questions(std::size_t encoder, std::span<const std::string> labels,
                                      std::size_t most) const;
  // The different texts of the encoder's samples, in order.
  std::vector<std::string> labels(std::size_t encoder) const;
  const std::string& label(std::size_t encoder, std::size_t sample) const;

  // The encoder's input for `room` items, of which the last may be empty. Files are read once.
  InputVectors vectors(std::size_t encoder, std::span<const OmniItem> items) const;

 private:
  struct Example;
  std::vector<std::size_t> spread(std::size_t encoder, std::size_t most) const;
  bool has(std::size_t encoder, std::size_t sample) const;
  std::int64_t vectors_of(std::size_t encoder, std::size_t sample) const;
  MediaShape shape_of(std::size_t encoder) const;
  void check() const;
  void append(Example& to, OmniMicroBatch& batch, std::size_t sample, const std::vector<std::int32_t>& text,
              const std::vector<std::int64_t>& first_item) const;
  std::int64_t positions(std::size_t sample) const;  // positions of its features and text
  std::vector<std::int32_t> text_of(std::size_t sample) const;
  const Media& media(std::size_t encoder, std::size_t sample) const;

  Job job_;
  std::vector<EncoderSpec> encoders_;
  MediaManifest manifest_;
  const Tokenizer& tokenizer_;
  std::vector<std::vector<MediaUnits>> units_;    // by encoder, by sample
  std::vector<std::vector<std::int32_t>> texts_;  // by sample: tokens of its text
  std::unique_ptr<MediaSampler> sampler_;
  mutable std::map<std::pair<std::size_t, std::size_t>, Media>
      media_;  // by encoder and sample, filled on demand
};

}  // namespace hyperrun
