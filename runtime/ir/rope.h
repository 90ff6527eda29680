// How fast rotary positions turn: of a head of n elements pair i by theta^(-2i/n) a position, or slower where
// a model was made fit for longer texts than it was first trained on.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

// Llama 3.1 (Hugging Face's rope_type "llama3"): what turns at most low_freq_factor times within
// original_sequence turns `factor` times as slowly, what turns at least high_freq_factor times as before, and
// what lies between by a mean of both. With original_sequence 0 all turns `factor` times as slowly
// ("linear").
struct RopeScaling {
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // the latter is larger
  std::int32_t original_sequence = 0;

  bool operator==(const RopeScaling&) const = default;
};

// Of the width / 2 pairs, in radians a position.
std::vector<double> rope_frequencies(std::int64_t width, double theta, const RopeScaling& scaling);

}  // namespace hyperrun
