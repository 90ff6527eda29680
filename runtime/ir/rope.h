// The frequencies of rotary positions. In a head of n elements, pair i turns by theta^(-2i/n) with each
// position, or slower in a model that was adapted to longer texts than it was first trained on.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// Llama 3.1's scaling (Hugging Face's rope_type "llama3"), by how often a pair turns within
// original_sequence:
//   at most low_freq_factor times: `factor` times as slowly;
//   at least high_freq_factor times: as before;
//   in between: by a weighted mean of both.
// With original_sequence 0 all pairs turn `factor` times as slowly ("linear").
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // the latter is larger
  std::int32_t original_sequence = 0;

  bool operator==(const RopeScaling&) const = default;
};

// The frequencies of the width / 2 pairs, in radians for each position.
std::vector<double> rope_frequencies(std::int64_t width, double theta, const RopeScaling& scaling);

}  // namespace hyperrun
