// What a step of a job with encoders learns from (docs/omni.md): for each micro-batch of the text model
// tokens, and where features stand between them; for each encoder the items that it reads for that.
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

// A picture, or a stretch of a sound: what an encoder takes at once.
struct OmniItem {
  std::int32_t sample = 0;  // of the split
  std::int32_t part = 0;    // of its sound
  bool operator==(const OmniItem&) const = default;
};

struct OmniMicroBatch {
  Samples samples;                           // features: rows of the items below
  std::vector<std::vector<OmniItem>> items;  // by encoder
};

// Samples held back, each with all the texts that it could have: of sequence s `sample[s]` says whose it is,
// and `label[s]` which text.
struct OmniQuestion {
  OmniMicroBatch batch;
  std::vector<std::int32_t> sample, label;
};

// One part of a manifest, as encoders and text model see it.
class OmniSplit {
 public:
  // `encoders` of the job, in its order. Throws kBadValue for a picture that has not as many patches as its
  // encoder takes, or for a sample that is longer than a sequence.
  OmniSplit(const Job& job, std::vector<EncoderSpec> encoders, MediaManifest manifest,
            const Tokenizer& tokenizer);

  std::size_t size() const { return manifest_.samples.size(); }
  // Of a sample: items for the encoder, by the files' heads.
  std::int64_t items(std::size_t encoder, std::size_t sample) const;
  // Of any micro-batch of the job, at most.
  std::int64_t most_items(std::size_t encoder) const;

  // The micro-batches of a step: a function of the job's seed and the step alone.
  std::vector<OmniMicroBatch> step(std::int64_t step) const;
  // What encoders have to do for that: items, by micro-batch and encoder. Nothing is decoded.
  std::vector<std::vector<std::int64_t>> loads(std::int64_t step) const;

  // `most` of the encoder's samples, evenly from all, with every one of `labels`, in micro-batches of the
  // job's size.
  std::vector<OmniQuestion> questions(std::size_t encoder, std::span<const std::string> labels,
                                      std::size_t most) const;
  // The different texts behind the encoder's samples, in order.
  std::vector<std::string> labels(std::size_t encoder) const;
  const std::string& label(std::size_t encoder, std::size_t sample) const;

  // What an encoder reads of these, `room` items of which the last may be empty. Files are read once.
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
  std::int64_t positions(std::size_t sample) const;  // that features and text take
  std::vector<std::int32_t> text_of(std::size_t sample) const;
  const Media& media(std::size_t encoder, std::size_t sample) const;

  Job job_;
  std::vector<EncoderSpec> encoders_;
  MediaManifest manifest_;
  const Tokenizer& tokenizer_;
  std::vector<std::vector<MediaUnits>> units_;    // by encoder, by sample
  std::vector<std::vector<std::int32_t>> texts_;  // by sample: tokens of its text
  std::unique_ptr<MediaSampler> sampler_;
  mutable std::map<std::pair<std::size_t, std::size_t>, Media> media_;  // by encoder and sample, as they come
};

}  // namespace hyperrun
