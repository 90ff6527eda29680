// The inner part of fill_normal (random.h): normal deviates of whole Philox blocks, vector by vector.
#pragma once

#include <array>
#include <cstdint>

namespace hyperrun::kernels {

struct NormalStream {
  std::array<std::uint32_t, 2> key;  // key of Philox: the seed
  std::uint64_t tensor = 0;          // upper half of the counter
  double std = 1;
};

// Returns std * deviate of the 32-bit word `word`, as one element of a block.
float normal_of(std::uint32_t word, double std);

// Writes the 4 * blocks elements of the counters first, first + 1, ...: bit by bit normal_of each block's
// words, on every processor.
void normal_blocks(const NormalStream& stream, std::uint64_t first, std::int64_t blocks, float* out);

}  // namespace hyperrun::kernels
