// The frequencies of rotary positions. In a head of n elements, pair i turns by theta^(-2i/n) with each
// position, or slower in a model that was adapted to longer texts than it was first trained on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

inline constexpr std::string_view kLinearRope = "linear", kDynamicRope = "dynamic", kYarnRope = "yarn",
                                  kLlama3Rope = "llama3", kLongRope = "longrope";

// A scaling of rotary positions, with the names and the formulas of Hugging Face's rope types. L is
// original_sequence, s the length of the longest text: a training's sequence, or a generation's context. It
// is settled once and does not change while a text grows.
//
//   linear    Every pair turns `factor` times as slowly (Chen et al. 2023).
//   dynamic   theta grows by (factor s / L - factor + 1)^(n / (n - 2)) if s > L ("NTK-aware", bloc97 2023).
//   llama3    Pairs that turn at most low_freq_factor times within L turn `factor` times as slowly; those
//   that
//             turn at least high_freq_factor times are unchanged; in between, by a mean (Llama 3.1).
//   yarn      The same by the number of the pair: up to the one that turns beta_fast times within L
//             unchanged, from the one that turns beta_slow times on slower, in between by a line (Peng et al.
//             2023). Cosines and sines are multiplied by attention_factor.
//   longrope  Pair i turns short_factor[i] times as slowly if s <= L, else long_factor[i] times (Ding et al.
//             2024). Cosines and sines are multiplied by attention_factor.
//
// The default is no scaling at all.
struct RopeScaling {
  std::string type{kLlama3Rope};
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // the latter is larger
  std::int32_t original_sequence = 0;                // L; with llama3, 0 makes all pairs slower
  double attention_factor = 0;  // 0: yarn's is 1 + mscale / 10 ln(factor), over the same with mscale_all_dim;
                                // longrope's is sqrt(1 + ln(factor) / ln(L))
  double beta_fast = 32, beta_slow = 1;
  double mscale = 0, mscale_all_dim = 0;  // 0: 1 and none
  bool truncate = true;                   // yarn: the first and the last pair of the line are whole numbers
  std::vector<double> short_factor, long_factor;  // one for each pair

  bool operator==(const RopeScaling&) const = default;
};

// The frequencies of the width / 2 pairs, in radians for each position. `longest`: s above.
std::vector<double> rope_frequencies(std::int64_t width, double theta, const RopeScaling& scaling,
                                     std::int64_t longest = 0);

// The factor of cosines and sines.
double rope_magnitude(const RopeScaling& scaling);

// The factor of attention's scores that DeepSeek-V2 and V3 have with yarn: the square of
// 1 + mscale_all_dim / 10 ln(factor).
double rope_score_factor(const RopeScaling& scaling);

}  // namespace hyperrun
