#include "runtime/device/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

class CrossEntropy : public OnEveryTarget {};
HYPERRUN_ON_EVERY_TARGET(CrossEntropy);

constexpr double kScale = 0.25;

double loss_reference(std::int64_t vocab, const std::vector<std::int32_t>& targets, const Doubles& logits) {
  double loss = 0;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] < 0) continue;
    const double* l = logits.data() + static_cast<std::int64_t>(r) * vocab;
    double sum = 0;
    for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(l[i]);
    loss += std::log(sum) - l[targets[r]];
  }
  return loss * kScale;
}

// The data of one device of a vocabulary-parallel group.
struct Part {
  std::int64_t offset, size;
  Floats e, m, s, t;
};

Part make_part(const Floats& logits, std::int64_t rows, std::int64_t vocab, std::int64_t offset,
               std::int64_t size) {
  Part p{offset, size, Floats(rows * size), Floats(rows), Floats(rows), Floats(rows)};
  for (std::int64_t r = 0; r < rows; ++r) {
    std::copy_n(logits.data() + r * vocab + offset, size, p.e.data() + r * size);
  }
  return p;
}

struct Result {
  float loss;
  std::int64_t counted;
  Floats gradient;  // [rows, vocab]
};

// The loops over the parts stand for the all-reduces of the header's picture.
Result run(std::vector<Part> parts, std::int64_t rows, std::int64_t vocab,
           const std::vector<std::int32_t>& targets) {
  Floats m(rows, -INFINITY), s(rows), t(rows);
  for (Part& p : parts) {
    kernels::softmax_stats(rows, p.size, p.offset, targets.data(), p.e.data(), p.m.data(), p.s.data(),
                           p.t.data());
    for (std::int64_t r = 0; r < rows; ++r) m[r] = std::max(m[r], p.m[r]);
  }
  for (Part& p : parts) {
    kernels::rescale_sums(rows, p.s.data(), p.m.data(), m.data(), p.s.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      s[r] += p.s[r];
      t[r] += p.t[r];
    }
  }
  Result result{0, 0, Floats(rows * vocab)};
  result.counted =
      kernels::cross_entropy_loss(rows, targets.data(), m.data(), s.data(), t.data(), kScale, &result.loss);
  for (Part& p : parts) {
    kernels::cross_entropy_backward(rows, p.size, p.offset, targets.data(), p.m.data(), m.data(), s.data(),
                                    static_cast<float>(kScale), p.e.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      std::copy_n(p.e.data() + r * p.size, p.size, result.gradient.data() + r * vocab + p.offset);
    }
  }
  return result;
}

TEST_P(CrossEntropy, WholeAndSplitVocabulary) {
  const std::int64_t vocab = 53;
  const std::vector<std::int32_t> targets = {0, 52, -1, 20, 19, 40};
  const auto rows = static_cast<std::int64_t>(targets.size());
  Floats logits = values(rows * vocab, 1);
  for (float& x : logits) x *= 8;
  const double expected = loss_reference(vocab, targets, to_double(logits));
  const Doubles gradient = numeric_gradient(
      [&](const Doubles& x) { return loss_reference(vocab, targets, x); }, to_double(logits));
  for (const auto& cuts : {std::vector<std::int64_t>{0, 53}, {0, 20, 53}, {0, 1, 17, 50, 53}}) {
    std::vector<Part> parts;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      parts.push_back(make_part(logits, rows, vocab, cuts[i], cuts[i + 1] - cuts[i]));
    }
    const Result got = run(std::move(parts), rows, vocab, targets);
    EXPECT_EQ(got.counted, 5);
    EXPECT_NEAR(got.loss, expected, 1e-6 * expected);
    EXPECT_LT(relative_error(got.gradient, gradient), kRoundOff) << cuts.size();
  }
}

// The log probability of each target, for logits times `scale`.
Doubles log_probs_reference(std::int64_t vocab, const std::vector<std::int32_t>& targets, double scale,
                            const Doubles& logits) {
  Doubles logp;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    const double* l = logits.data() + static_cast<std::int64_t>(r) * vocab;
    double sum = 0;
    for (std::int64_t i = 0; i < vocab; ++i) sum += std::exp(scale * l[i]);
    logp.push_back(targets[r] < 0 ? 0 : scale * l[targets[r]] - std::log(sum));
  }
  return logp;
}

TEST_P(CrossEntropy, LogProbsAtATemperatureAndTheirWeightedGradient) {
  const std::int64_t vocab = 53, cut = 20;
  const double scale = 1 / 0.7;
  const std::vector<std::int32_t> targets = {0, 52, -1, 20, 19};
  const auto rows = static_cast<std::int64_t>(targets.size());
  Floats logits = values(rows * vocab, 1);
  for (float& x : logits) x *= 8;
  const Floats weights{0.5F, -2, 3, 0, 1.25F};
  const Doubles expected = log_probs_reference(vocab, targets, scale, to_double(logits));
  const Doubles gradient = numeric_gradient(
      [&](const Doubles& x) {
        const Doubles logp = log_probs_reference(vocab, targets, scale, x);
        double sum = 0;
        for (std::size_t r = 0; r < logp.size(); ++r) sum += static_cast<double>(weights[r]) * logp[r];
        return sum;
      },
      to_double(logits));
  std::vector<Part> parts{make_part(logits, rows, vocab, 0, cut),
                          make_part(logits, rows, vocab, cut, vocab - cut)};
  Floats m(rows, -INFINITY), s(rows), t(rows), logp(rows), got(rows * vocab);
  for (Part& p : parts) {
    kernels::softmax_stats(rows, p.size, p.offset, targets.data(), p.e.data(), p.m.data(), p.s.data(),
                           p.t.data(), static_cast<float>(scale));
    for (std::int64_t r = 0; r < rows; ++r) m[r] = std::max(m[r], p.m[r]), t[r] += p.t[r];
  }
  for (Part& p : parts) {
    kernels::rescale_sums(rows, p.s.data(), p.m.data(), m.data(), p.s.data());
    for (std::int64_t r = 0; r < rows; ++r) s[r] += p.s[r];
  }
  kernels::log_probs(rows, targets.data(), m.data(), s.data(), t.data(), logp.data());
  EXPECT_LT(relative_error(logp, expected), kRoundOff);
  for (Part& p : parts) {
    kernels::cross_entropy_backward(rows, p.size, p.offset, targets.data(), p.m.data(), m.data(), s.data(),
                                    static_cast<float>(-scale), p.e.data(), weights.data());
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(p.e.data() + r * p.size, p.size, got.data() + r * vocab + p.offset);
  }
  EXPECT_LT(relative_error(got, gradient), kRoundOff);
}

TEST_P(CrossEntropy, IgnoredRowHasNoGradient) {
  const std::vector<std::int32_t> targets = {-1};
  const Result got = run({make_part(values(30, 1), 1, 30, 0, 30)}, 1, 30, targets);
  EXPECT_EQ(got.counted, 0);
  EXPECT_EQ(got.loss, 0.0F);
  EXPECT_EQ(got.gradient, Floats(30, 0.0F));
}

TEST_P(CrossEntropy, LogitsFarApartStayFinite) {
  Floats logits(40, -500.0F);
  logits[3] = 1000;
  const std::vector<std::int32_t> targets = {5};
  const Result got = run({make_part(logits, 1, 40, 0, 20), make_part(logits, 1, 40, 20, 20)}, 1, 40, targets);
  EXPECT_FLOAT_EQ(got.loss, 1500 * static_cast<float>(kScale));
  EXPECT_FLOAT_EQ(got.gradient[3], static_cast<float>(kScale));
  EXPECT_FLOAT_EQ(got.gradient[5], -static_cast<float>(kScale));
}

}  // namespace
}  // namespace hyperrun::testing
