#include "runtime/reinforce/experience.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace hyperrun {

Samples samples_of(const std::vector<Completion>& completions, std::int64_t length) {
  Samples samples;
  samples.tokens = length;
  const auto positions = static_cast<std::size_t>(length);
  samples.ids.assign(completions.size() * positions, 0);
  samples.targets.assign(completions.size() * positions, -1);
  for (std::size_t c = 0; c < completions.size(); ++c) {
    const Completion& one = completions[c];
    std::vector<std::int32_t> text = one.prompt;
    text.insert(text.end(), one.tokens.begin(), one.tokens.end());
    HR_CHECK(!one.prompt.empty() && text.size() <= positions + 1, "a completion longer than its row");
    std::copy_n(text.begin(), std::min(text.size(), positions),
                samples.ids.begin() + std::ptrdiff_t(c * positions));
    for (std::size_t i = one.prompt.size(); i < text.size(); ++i)
      samples.targets[c * positions + i - 1] = text[i];
  }
  return samples;
}

Samples experience_of(const std::vector<Completion>& completions, std::int64_t length,
                      const std::vector<float>& advantages, const std::vector<float>& reference) {
  HR_CHECK(advantages.size() == completions.size());
  Samples samples = samples_of(completions, length);
  const std::size_t n = samples.ids.size(), positions = static_cast<std::size_t>(length);
  HR_CHECK(reference.empty() || reference.size() == n, "a score for each position");
  samples.weight.assign(n, 0);
  samples.advantage.assign(n, 0);
  samples.behaviour.assign(n, 0);
  for (std::size_t c = 0; c < completions.size(); ++c) {
    const Completion& one = completions[c];
    HR_CHECK(one.logp.size() == one.tokens.size(), "a log probability for each token");
    for (std::size_t t = 0; t < one.tokens.size(); ++t) {
      const std::size_t at = c * positions + one.prompt.size() + t - 1;
      samples.weight[at] = 1 / static_cast<float>(completions.size() * one.tokens.size());
      samples.advantage[at] = advantages[c];
      samples.behaviour[at] = one.logp[t];
    }
  }
  samples.reference = reference.empty() ? samples.behaviour : reference;
  return samples;
}

}  // namespace hyperrun
