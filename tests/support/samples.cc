#include "tests/support/samples.h"

#include <cmath>
#include <random>

#include "runtime/model/text/synthetic.h"

namespace hyperrun::testing {

Samples made_up_samples(const Job& job, std::int64_t step) {
  const std::int64_t sequence = job.model.sequence, batch = job.training.batch;
  const auto text =
      synthetic_tokens(job.model.vocab, static_cast<std::size_t>((step + 1) * batch * (sequence + 1)));
  const float fresh = -std::log(static_cast<float>(job.model.vocab));
  std::mt19937 random(static_cast<std::uint32_t>(17 + step));
  std::uniform_real_distribution<float> noise(-1, 1);
  Samples s;
  s.tokens = sequence;
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t prompt = 1 + (3 * i + step) % (sequence / 3),
                       end = sequence - (5 * i) % (sequence / 2);
    const std::int32_t* const tokens = text.data() + (step * batch + i) * (sequence + 1);
    const float advantage = (i % 2 == 0 ? 1.0F : -1.0F) * (0.5F + 0.25F * static_cast<float>(i % 3));
    for (std::int64_t t = 0; t < sequence; ++t) {
      const bool counts = t + 1 >= prompt && t < end;
      counted += counts ? 1 : 0;
      s.ids.push_back(tokens[t]);
      s.targets.push_back(counts ? tokens[t + 1] : -1);
      s.weight.push_back(counts ? 1.0F : 0.0F);
      s.advantage.push_back(advantage);
      s.behaviour.push_back(fresh + 0.4F * noise(random));
      s.reference.push_back(fresh + 0.3F * noise(random));
    }
  }
  for (float& weight : s.weight) weight /= static_cast<float>(counted);
  return s;
}

Samples to_be_scored(const Samples& samples) {
  return {.tokens = samples.tokens, .ids = samples.ids, .targets = samples.targets};
}

}  // namespace hyperrun::testing
