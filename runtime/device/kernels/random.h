// Random numbers that depend on their use, not on the device that computes them or the time. The
// counter-based generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", 2011).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hyperrun::kernels {

// Runs ten rounds of Philox 4x32.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// This device's part of a tensor, by dimension: global size, first index held, number of indices held. The
// buffer is [local...] row-major. All three have one length, at most 8.
struct ShardView {
  std::span<const std::int64_t> global, offset, local;
};

// Sets every element to std * (standard normal deviate of its flat index in the whole tensor). So a shard of
// any layout gets, bit by bit, the whole tensor's values. The deviate is the inverse normal distribution
// function (Wichura's AS 241) of the 32-bit word `index % 4` of philox({index / 4, tensor_key}, seed), thus
// within 6.3 standard deviations.
void fill_normal(std::uint64_t seed, std::uint64_t tensor_key, float std, const ShardView& shard, float* out);

// Returns a uniform number in (0, 1), 53 bits, from the stream of (seed, position, row).
double uniform(std::uint64_t seed, std::uint64_t position, std::uint64_t row);

}  // namespace hyperrun::kernels
