#include "runtime/omni/examples.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {

// A sequence that is being filled.
struct OmniSplit::Example {
  std::size_t sequence = 0;  // index in the micro-batch
  std::int64_t at = 0;       // next free position
};

namespace {

std::int64_t divided(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

bool is_image(const EncoderSpec& e) { return e.input == kImage; }

// A micro-batch of empty sequences.
OmniMicroBatch empty_batch(std::int64_t sequences, std::int64_t tokens, std::size_t encoders,
                           std::int32_t filling) {
  OmniMicroBatch batch;
  const auto positions = static_cast<std::size_t>(sequences * tokens);
  batch.samples.tokens = tokens;
  batch.samples.ids.assign(positions, filling);
  batch.samples.targets.assign(positions, -1);
  batch.samples.weight.assign(positions, 0);
  batch.samples.features.assign(encoders, std::vector<std::int32_t>(positions, -1));
  batch.items.resize(encoders);
  return batch;
}

// Gives equal weights to all counted tokens; the weights add up to 1.
void weigh(std::vector<OmniMicroBatch>& batches) {
  std::int64_t counted = 0;
  for (const OmniMicroBatch& b : batches)
    counted += std::ranges::count_if(b.samples.targets, [](std::int32_t t) { return t >= 0; });
  for (OmniMicroBatch& b : batches)
    for (std::size_t i = 0; i < b.samples.targets.size(); ++i)
      if (b.samples.targets[i] >= 0) b.samples.weight[i] = 1 / static_cast<float>(counted);
}

}  // namespace

OmniSplit::OmniSplit(const Job& job, std::vector<EncoderSpec> encoders, MediaManifest manifest,
                     const Tokenizer& tokenizer)
    : job_(job), encoders_(std::move(encoders)), manifest_(std::move(manifest)), tokenizer_(tokenizer) {
  for (std::size_t e = 0; e < encoders_.size(); ++e) {
    MediaManifest own = manifest_;
    for (MediaSample& s : own.samples) (is_image(encoders_[e]) ? s.audio : s.image) = {};
    units_.push_back(measure_media(own, shape_of(e)));
  }
  for (std::size_t s = 0; s < size(); ++s) texts_.push_back(text_of(s));
  check();
  if (size() > 0)
    sampler_ = std::make_unique<MediaSampler>(
        units_[0], MediaSampling{job_.training.batch, job_.media.least, job_.media.most, job_.run.seed});
}

MediaShape OmniSplit::shape_of(std::size_t encoder) const {
  const EncoderSpec& e = encoders_[encoder];
  return {e.patch, e.mel_bins};
}

bool OmniSplit::has(std::size_t encoder, std::size_t sample) const {
  const MediaSample& s = manifest_.samples[sample];
  return !(is_image(encoders_[encoder]) ? s.image : s.audio).path.empty();
}

// The last vector of a sound is padded with silence.
std::int64_t OmniSplit::vectors_of(std::size_t encoder, std::size_t sample) const {
  if (!has(encoder, sample)) return 0;
  const MediaUnits& units = units_[encoder][sample];
  return is_image(encoders_[encoder]) ? units.patches : divided(units.frames, encoders_[encoder].frames);
}

std::int64_t OmniSplit::items(std::size_t encoder, std::size_t sample) const {
  return divided(vectors_of(encoder, sample), encoders_[encoder].tokens);
}

std::int64_t OmniSplit::most_items(std::size_t encoder) const {
  std::int64_t most = 0;
  for (std::size_t s = 0; s < size(); ++s) most = std::max(most, items(encoder, s));
  return most * job_.media.most * (job_.training.batch / job_.training.micro_batches);
}

const std::string& OmniSplit::label(std::size_t encoder, std::size_t sample) const {
  const MediaSample& s = manifest_.samples[sample];
  return encoders_[encoder].learns == "category" ? s.category : s.text;
}

// The label of the first encoder that reads the sample; the sample's text if none does.
std::vector<std::int32_t> OmniSplit::text_of(std::size_t sample) const {
  for (std::size_t e = 0; e < encoders_.size(); ++e)
    if (has(e, sample)) return tokenizer_.encode(label(e, sample));
  return tokenizer_.encode(manifest_.samples[sample].text);
}

std::int64_t OmniSplit::positions(std::size_t sample) const {
  std::int64_t n = std::ssize(texts_[sample]);
  for (std::size_t e = 0; e < encoders_.size(); ++e) n += vectors_of(e, sample);
  return n + 1;  // one more for the end of the text
}

void OmniSplit::check() const {
  for (std::size_t s = 0; s < size(); ++s) {
    const std::string place = (manifest_.folder / manifest_.samples[s].image.path).string();
    for (std::size_t e = 0; e < encoders_.size(); ++e)
      if (is_image(encoders_[e]) && has(e, s) && units_[e][s].patches != encoders_[e].tokens)
        throw Error(Code::kBadValue, fmt::format("the picture has {} patches, and the encoder takes {}",
                                                 units_[e][s].patches, encoders_[e].tokens))
            .at(place)
            .legal("pictures of one size, with \"tokens\" patches of \"patch\" pixels along each side")
            .fix("correct tokens or patch of the encoder");
    if (positions(s) > job_.model.sequence)
      throw Error(Code::kBadValue, fmt::format("the sample {} takes {} positions, a sequence has {}",
                                               manifest_.samples[s].id, positions(s), job_.model.sequence))
          .at("model.sequence")
          .legal("at least " + std::to_string(positions(s)))
          .fix("make the sequence longer, or vectors of more frames or pixels");
  }
}

// Appends the sample's features, then its text. Each token is predicted at the position before it.
void OmniSplit::append(Example& to, OmniMicroBatch& batch, std::size_t sample,
                       const std::vector<std::int32_t>& text,
                       const std::vector<std::int64_t>& first_item) const {
  const std::size_t row = to.sequence * static_cast<std::size_t>(batch.samples.tokens);
  for (std::size_t e = 0; e < encoders_.size(); ++e)
    for (std::int64_t v = 0; v < vectors_of(e, sample); ++v)
      batch.samples.features[e][row + static_cast<std::size_t>(to.at++)] =
          static_cast<std::int32_t>(first_item[e] * encoders_[e].tokens + v);
  const auto set = [&](std::int64_t position, std::int32_t target) {
    if (position >= 0) batch.samples.targets[row + static_cast<std::size_t>(position)] = target;
  };
  for (const std::int32_t token : text) {
    set(to.at - 1, token);
    batch.samples.ids[row + static_cast<std::size_t>(to.at++)] = token;
  }
  set(to.at - 1, tokenizer_.end_of_text());
  ++to.at;  // this position stands for the end of the text
}

std::vector<OmniMicroBatch> OmniSplit::step(std::int64_t step) const {
  const std::int32_t count = job_.training.micro_batches, each = job_.training.batch / count;
  std::vector<OmniMicroBatch> batches;
  for (std::int32_t m = 0; m < count; ++m) {
    OmniMicroBatch batch = empty_batch(each, job_.model.sequence, encoders_.size(), tokenizer_.end_of_text());
    for (std::int32_t s = 0; s < each; ++s) {
      Example example{static_cast<std::size_t>(s)};
      for (const std::int32_t sample : sampler_->example(step, m * each + s).samples) {
        const auto i = static_cast<std::size_t>(sample);
        if (example.at + positions(i) > job_.model.sequence) break;
        std::vector<std::int64_t> first;
        for (std::size_t e = 0; e < encoders_.size(); ++e) {
          first.push_back(std::ssize(batch.items[e]));
          for (std::int64_t part = 0; part < items(e, i); ++part)
            batch.items[e].push_back({sample, static_cast<std::int32_t>(part)});
        }
        append(example, batch, i, texts_[i], first);
      }
    }
    batches.push_back(std::move(batch));
  }
  weigh(batches);
  return batches;
}

std::vector<std::vector<std::int64_t>> OmniSplit::loads(std::int64_t step) const {
  const std::int32_t count = job_.training.micro_batches, each = job_.training.batch / count;
  std::vector<std::vector<std::int64_t>> loads(static_cast<std::size_t>(count),
                                               std::vector<std::int64_t>(encoders_.size()));
  for (std::int32_t example = 0; example < job_.training.batch; ++example) {
    std::int64_t at = 0;
    for (const std::int32_t sample : sampler_->example(step, example).samples) {
      const auto i = static_cast<std::size_t>(sample);
      if ((at += positions(i)) > job_.model.sequence) break;
      for (std::size_t e = 0; e < encoders_.size(); ++e)
        loads[static_cast<std::size_t>(example / each)][e] += items(e, i);
    }
  }
  return loads;
}

std::vector<std::string> OmniSplit::labels(std::size_t encoder) const {
  std::set<std::string> all;
  for (std::size_t s = 0; s < size(); ++s)
    if (has(encoder, s)) all.insert(label(encoder, s));
  return {all.begin(), all.end()};
}

// Chooses samples that the encoder reads, evenly from all: similar samples are neighbours in a manifest.
std::vector<std::size_t> OmniSplit::spread(std::size_t encoder, std::size_t most) const {
  std::vector<std::size_t> all, some;
  for (std::size_t s = 0; s < size(); ++s)
    if (has(encoder, s)) all.push_back(s);
  const std::size_t count = std::min(most, all.size());
  for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

// Sequences of one sample in one micro-batch share its items.
std::vector<OmniQuestion> OmniSplit::questions(std::size_t encoder, std::span<const std::string> labels,
                                               std::size_t most) const {
  const std::int64_t each = job_.training.batch / job_.training.micro_batches;
  std::vector<OmniQuestion> all;
  std::int64_t filled = each;
  for (const std::size_t s : spread(encoder, most)) {
    std::vector<std::int64_t> first;
    for (std::size_t l = 0; l < labels.size(); ++l, ++filled) {
      if (filled == each) {
        all.push_back(
            {empty_batch(each, job_.model.sequence, encoders_.size(), tokenizer_.end_of_text()), {}, {}});
        filled = 0, first.clear();
      }
      OmniQuestion& q = all.back();
      if (first.empty())
        for (std::size_t e = 0; e < encoders_.size(); ++e) {
          first.push_back(std::ssize(q.batch.items[e]));
          for (std::int64_t part = 0; part < items(e, s); ++part)
            q.batch.items[e].push_back({static_cast<std::int32_t>(s), static_cast<std::int32_t>(part)});
        }
      Example example{static_cast<std::size_t>(filled)};
      append(example, q.batch, s, tokenizer_.encode(labels[l]), first);
      q.sample.push_back(static_cast<std::int32_t>(s));
      q.label.push_back(static_cast<std::int32_t>(l));
    }
  }
  return all;
}

const Media& OmniSplit::media(std::size_t encoder, std::size_t sample) const {
  const auto key = std::pair(encoder, sample);
  if (const auto known = media_.find(key); known != media_.end()) return known->second;
  MediaSample wanted = manifest_.samples[sample];
  (is_image(encoders_[encoder]) ? wanted.audio : wanted.image) = {};
  return media_.emplace(key, load_media(manifest_, wanted, shape_of(encoder))).first->second;
}

InputVectors OmniSplit::vectors(std::size_t encoder, std::span<const OmniItem> items) const {
  const EncoderSpec& e = encoders_[encoder];
  InputVectors v;
  v.items = std::ssize(items);
  v.tokens = e.tokens;
  v.width = e.inputs();
  const auto whole = static_cast<std::size_t>(v.tokens * v.width);
  v.values.resize(items.size() * whole);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Media& m = media(encoder, static_cast<std::size_t>(items[i].sample));
    const std::vector<float>& from = is_image(e) ? m.patches : m.mel;
    const std::size_t first = static_cast<std::size_t>(items[i].part) * whole;
    const std::size_t n = std::min(whole, from.size() - std::min(first, from.size()));
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), n,
                v.values.begin() + static_cast<std::ptrdiff_t>(i * whole));
  }
  return v;
}

}  // namespace hyperrun
