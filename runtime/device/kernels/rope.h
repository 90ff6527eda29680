// Rotary position embedding. Halves of a head are rotated against each other (the order of Hugging Face's
// Llama): for i < hd/2, with angle a = position * frequency[i] (theta^(-2i/hd) in the usual case),
//   y[i]        = x[i] * cos a - x[i + hd/2] * sin a
//   y[i + hd/2] = x[i + hd/2] * cos a + x[i] * sin a
// or neighbours, 2i and 2i + 1 in place of i and i + hd/2 (DeepSeek's). With `turned` only the last elements
// of a head are rotated; they are then the hd above.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/device/kernels/array.h"

namespace hyperrun::kernels {

// Fills table [positions, head_dim] for positions start, start + 1, ...: first the head_dim / 2 cosines of
// each, one for each frequency (radians a position), then the sines, all times `magnitude`. Angles are
// computed in double.
void rope_table(std::int64_t start, std::int64_t positions, std::span<const double> frequencies, float* table,
                double magnitude = 1);

// The inverse rotation computes the gradient.
enum class Rotate : bool { kForward = false, kInverse = true };

enum class Pairs : bool { kHalves = false, kNeighbours = true };

// Rotates x to y, [rows, heads, head_dim] with ldx, ldy elements from row to row (heads * head_dim when
// contiguous), of one format; y may be x (then ldy == ldx). Row r uses line r % seq of the table. `turned` 0:
// all elements. `at_front`: the first elements of a head turn, not the last.
void rope(Rotate direction, std::int64_t rows, std::int64_t seq, std::int64_t heads, std::int64_t head_dim,
          ConstArray x, std::int64_t ldx, const float* table, Array y, std::int64_t ldy,
          std::int64_t turned = 0, Pairs pairs = Pairs::kHalves, bool at_front = false);

// The sizes of a call, with `turned` filled in.
struct RopePlan {
  std::int64_t rows, seq, heads, head_dim, turned, ldx, ldy;
  Pairs pairs;
  bool at_front;
};

}  // namespace hyperrun::kernels
