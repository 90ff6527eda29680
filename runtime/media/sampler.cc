#include "runtime/media/sampler.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/permutation.h"

namespace hyperrun {

MediaSampler::MediaSampler(std::vector<MediaUnits> units, MediaSampling sampling)
    : units_(std::move(units)), sampling_(sampling) {
  HR_CHECK(!units_.empty() && sampling.batch >= 1 && sampling.least >= 1 && sampling.least <= sampling.most);
}

std::int32_t MediaSampler::sample_at(std::int64_t place) const {
  const std::int64_t epoch = place / std::ssize(units_), within = place % std::ssize(units_);
  if (sampling_.order == MediaOrder::kSequential) return static_cast<std::int32_t>(within);
  const std::uint64_t key = mix(mix(sampling_.seed) ^ static_cast<std::uint64_t>(epoch));
  return static_cast<std::int32_t>(permuted(static_cast<std::uint64_t>(within), units_.size(), key));
}

MediaExample MediaSampler::example(std::int64_t step, std::int64_t index) const {
  HR_CHECK(step >= 0 && index >= 0 && index < sampling_.batch);
  const std::int64_t drawn = step * sampling_.batch + index;
  const std::uint64_t choices = static_cast<std::uint64_t>(sampling_.most - sampling_.least) + 1;
  // The key differs from those of epochs, so that the number of samples is independent of their order.
  const std::uint64_t more = mix(mix(~sampling_.seed) ^ static_cast<std::uint64_t>(drawn)) % choices;
  MediaExample example;
  for (std::int64_t k = 0; k < sampling_.least + static_cast<std::int64_t>(more); ++k) {
    example.samples.push_back(sample_at(drawn * sampling_.most + k));
    example.units += units_[static_cast<std::size_t>(example.samples.back())];
  }
  return example;
}

std::vector<MediaExample> MediaSampler::batch(std::int64_t step) const {
  std::vector<MediaExample> examples;
  for (std::int64_t i = 0; i < sampling_.batch; ++i) examples.push_back(example(step, i));
  return examples;
}

}  // namespace hyperrun
