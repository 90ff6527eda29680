#include "runtime/model/text/sampler.h"

#include <algorithm>
#include <bit>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

// The finaliser of SplitMix64: every bit of the input moves about half of the output's.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr int kRounds = 6;

}  // namespace

// A Feistel network over the smallest even number of bits that holds the range; what falls outside
// walks on, fewer than four times on average, and comes back inside because the network is a bijection.
std::uint64_t permuted(std::uint64_t index, std::uint64_t size, std::uint64_t key) {
  HR_CHECK(index < size);
  const int half = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t swapped =
          left ^ (mix(key ^ mix(right + (static_cast<std::uint64_t>(round) << 56))) & mask);
      left = right;
      right = swapped;
    }
    index = (left << half) | right;
  } while (index >= size);
  return index;
}

Sampler::Sampler(std::span<const std::int32_t> tokens, std::int32_t sequence, std::int32_t batch,
                 std::uint64_t seed, SampleOrder order)
    : tokens_(tokens), sequence_(sequence), batch_(batch), seed_(seed), order_(order) {
  HR_CHECK(sequence > 0 && batch > 0 && std::ssize(tokens) > sequence);
  windows_ = (std::ssize(tokens) - 1) / sequence;
  slack_ = (std::ssize(tokens) - 1) % sequence;
}

std::int64_t Sampler::start(std::int64_t step, std::int64_t index) const {
  HR_CHECK(step >= 0 && index >= 0 && index < batch_);
  const std::int64_t drawn = step * batch_ + index;
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
