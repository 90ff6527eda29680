#include "runtime/model/text/sampler.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/permutation.h"

namespace hyperrun {

Sampler::Sampler(std::span<const std::int32_t> tokens, std::int32_t sequence, std::int32_t batch,
                 std::uint64_t seed, SampleOrder order)
    : tokens_(tokens), sequence_(sequence), batch_(batch), seed_(seed), order_(order) {
  HR_CHECK(sequence > 0 && batch > 0 && std::ssize(tokens) > sequence);
  windows_ = (std::ssize(tokens) - 1) / sequence;
  slack_ = (std::ssize(tokens) - 1) % sequence;
}

std::int64_t Sampler::start(std::int64_t step, std::int64_t index) const {
  HR_CHECK(step >= 0 && index >= 0 && index < batch_);
  const std::int64_t drawn = first_of(step) + index;
  const std::int64_t epoch = drawn / windows_, place = drawn % windows_;
  if (order_ == SampleOrder::kSequential) return place * sequence_;

  const std::uint64_t key = mix(mix(seed_) ^ static_cast<std::uint64_t>(epoch));
  const std::uint64_t window =
      permuted(static_cast<std::uint64_t>(place), static_cast<std::uint64_t>(windows_), key);
  const std::uint64_t offset = mix(~key) % static_cast<std::uint64_t>(slack_ + 1);
  return static_cast<std::int64_t>(offset) + static_cast<std::int64_t>(window) * sequence_;
}

void Sampler::fill(std::int64_t step, std::int64_t first, std::int64_t count, Columns columns,
                   std::int32_t* ids, std::int32_t* targets) const {
  HR_CHECK(columns.from >= 0 && columns.length >= 0 && columns.from + columns.length <= sequence_);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int32_t* source = tokens_.data() + start(step, first + row) + columns.from;
    std::copy_n(source, columns.length, ids + row * columns.length);
    std::copy_n(source + 1, columns.length, targets + row * columns.length);
  }
}

}  // namespace hyperrun
