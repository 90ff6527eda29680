#include "runtime/device/kernels/random.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/device/kernels/normal_blocks.h"

namespace hyperrun::kernels {
namespace {

constexpr std::size_t kMaxDims = 8;

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

// The upper half of the counter tells streams of one seed apart: a tensor's key for initial values, this
// constant for sampling.
constexpr std::uint32_t kSamplingStream = 0x73616d70;  // "samp"

// Fills consecutive flat indices of a tensor: the ends of the run, which share a block with others, and the
// whole blocks between.
void fill_run(const NormalStream& stream, std::uint64_t first, std::int64_t count, float* out) {
  std::array<float, 4> block{};
  const auto part = [&](std::uint64_t index, std::int64_t n) {
    normal_blocks(stream, index / 4, 1, block.data());
    std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(index % 4), n, out);
    out += n;
  };
  const std::int64_t head = std::min<std::int64_t>(count, static_cast<std::int64_t>(-first % 4));
  if (head > 0) part(first, head);
  const std::int64_t blocks = (count - head) / 4, tail = (count - head) % 4;
  first += static_cast<std::uint64_t>(head);
  normal_blocks(stream, first / 4, blocks, out);
  out += 4 * blocks;
  if (tail > 0) part(first + static_cast<std::uint64_t>(4 * blocks), tail);
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {high(b) ^ c[1] ^ k[0], low(b), high(a) ^ c[3] ^ k[1], low(a)};
    k[0] += 0x9E3779B9U;
    k[1] += 0xBB67AE85U;
  }
  return c;
}

void fill_normal(std::uint64_t seed, std::uint64_t tensor_key, float std, const ShardView& shard,
                 float* out) {
  const std::size_t dims = shard.global.size();
  HR_CHECK(dims <= kMaxDims && shard.offset.size() == dims && shard.local.size() == dims);
  std::array<std::int64_t, kMaxDims> index{};
  for (const std::int64_t n : shard.local) {
    if (n == 0) return;
  }
  const NormalStream stream{{low(seed), high(seed)}, tensor_key, static_cast<double>(std)};
  const std::int64_t run = dims == 0 ? 1 : shard.local[dims - 1];
  while (true) {
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < dims; ++i) flat = flat * shard.global[i] + shard.offset[i] + index[i];
    fill_run(stream, static_cast<std::uint64_t>(flat), run, out);
    out += run;
    // Go to the next row, like an odometer over all dimensions but the last.
    std::size_t i = dims < 2 ? 0 : dims - 1;
    while (i > 0 && ++index[i - 1] == shard.local[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

double uniform(std::uint64_t seed, std::uint64_t position, std::uint64_t row) {
  const auto word =
      philox({low(position), high(position), low(row), kSamplingStream}, {low(seed), high(seed)});
  const std::uint64_t bits = (std::uint64_t{word[0]} << 32 | word[1]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace hyperrun::kernels
