#include "runtime/device/kernels/random.h"

#include <array>
#include <cmath>

#include "runtime/base/error.h"

namespace hyperrun::kernels {
namespace {

constexpr std::size_t kMaxDims = 8;

std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
std::uint32_t high(std::uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }

// Streams of one seed are told apart by the upper half of the counter: a tensor's key for initial values,
// this constant for sampling.
constexpr std::uint32_t kSamplingStream = 0x73616d70;  // "samp"

// Inverse of the normal distribution function, Wichura 1988, algorithm AS 241, PPND7: about seven digits.
// In double with only + * / (and log, sqrt in the tails): the same bits on every x86-64.
double inverse_normal(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
  }
  // The algorithm's third range begins at p < e^-25, which no 32-bit word reaches.
  const double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p)) - 1.6;
  const double value = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
                       ((0.12021132975 * r + 0.73700164250) * r + 1.0);
  return q < 0 ? -value : value;
}

// Deviates of consecutive flat indices; the block of four that was computed last is kept.
class NormalStream {
 public:
  NormalStream(std::uint64_t seed, std::uint64_t tensor, double std)
      : key_{low(seed), high(seed)}, tensor_(tensor), std_(std) {}

  void fill_run(std::uint64_t first, std::int64_t count, float* out) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t index = first + static_cast<std::uint64_t>(i);
      if (i == 0 || index % 4 == 0) block_ = philox(counter(index / 4), key_);
      const double p = (static_cast<double>(block_[index % 4]) + 0.5) * 0x1p-32;
      out[i] = static_cast<float>(std_ * inverse_normal(p));
    }
  }

 private:
  std::array<std::uint32_t, 4> counter(std::uint64_t block) const {
    return {low(block), high(block), low(tensor_), high(tensor_)};
  }

  std::array<std::uint32_t, 2> key_;
  std::uint64_t tensor_;
  double std_;
  std::array<std::uint32_t, 4> block_{};
};

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

std::uint64_t tensor_key(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char ch : name) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001b3ULL;
  return hash;
}

void fill_normal(std::uint64_t seed, std::uint64_t tensor_key, float std, const ShardView& shard,
                 float* out) {
  const std::size_t dims = shard.global.size();
  HR_CHECK(dims <= kMaxDims && shard.offset.size() == dims && shard.local.size() == dims);
  std::array<std::int64_t, kMaxDims> index{};
  for (const std::int64_t n : shard.local) {
    if (n == 0) return;
  }
  NormalStream stream(seed, tensor_key, std);
  const std::int64_t run = dims == 0 ? 1 : shard.local[dims - 1];
  while (true) {
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < dims; ++i) flat = flat * shard.global[i] + shard.offset[i] + index[i];
    stream.fill_run(static_cast<std::uint64_t>(flat), run, out);
    out += run;
    // The next row: like an odometer over all dimensions but the last.
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
