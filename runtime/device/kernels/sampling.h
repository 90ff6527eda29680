// The choice of the next token.
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

struct Sampling {
  float temperature = 0;   // 0: choose the most likely token
  std::int64_t top_k = 0;  // choose among the k most likely only; 0: among all
  double top_p = 1;  // then choose among the most likely that together have this part of their probability
  std::uint64_t seed = 0;
};

std::int64_t sample_token_scratch_bytes(std::int64_t vocab);

// True if a token can be drawn from the logits.
bool all_finite(std::int64_t vocab, const float* logits);

// Draws a token from logits [vocab], vocab > 0, all finite. Ties go to the smaller token id. The random
// number depends on (seed, position, id), so a sequence is generated alike on any number of devices, beside
// any others.
std::int32_t sample_token(std::int64_t vocab, const float* logits, const Sampling& how, std::int64_t position,
                          std::int64_t id, void* scratch);

// The token's log probability at the temperature, among all tokens, whatever the choice is restricted to.
// Temperature 0, at which one token is certain, counts as 1. `scratch` as above.
float log_prob_of(std::int64_t vocab, const float* logits, std::int32_t token, double temperature,
                  float* scratch);

}  // namespace hyperrun::kernels
