// Choice of the next token.
#pragma once

#include <cstdint>

namespace hyperrun::kernels {

struct Sampling {
  float temperature = 0;   // 0: the most likely token
  std::int64_t top_k = 0;  // choose among the k most likely only; 0: all
  double top_p = 1;  // and, of those, among the most likely that have so much of their probability together
  std::uint64_t seed = 0;
};

std::int64_t sample_token_scratch_bytes(std::int64_t vocab);

// Whether a token can be drawn from them.
bool all_finite(std::int64_t vocab, const float* logits);

// logits [vocab], vocab > 0, all finite. Ties go to the smaller token id. The random number is that of (seed,
// position, id), so a sequence is generated alike on any number of devices, in any company.
std::int32_t sample_token(std::int64_t vocab, const float* logits, const Sampling& how, std::int64_t position,
                          std::int64_t id, void* scratch);

// The token's log probability at the temperature, among all tokens, whatever they are then chosen from. At
// temperature 0, where one token is certain, at temperature 1. `scratch` as above.
float log_prob_of(std::int64_t vocab, const float* logits, std::int32_t token, double temperature,
                  float* scratch);

}  // namespace hyperrun::kernels
