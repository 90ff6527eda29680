// The loss of a policy against its definition, branch by branch, and its derivative against finite
// differences.
#include "runtime/device/kernels/policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

constexpr double kClip = 0.2, kKl = 0.3;

struct Token {
  double logp, weight, advantage, behaviour, reference;
};

struct Terms {
  double loss, divergence, clipped, ratio;
};

// The definition: an advantage lowers the loss no further than to the bound in its direction.
Terms terms(const Token& t) {
  const double ratio = std::exp(t.logp - t.behaviour), d = t.reference - t.logp;
  double objective = ratio * t.advantage, clipped = 0;
  if (t.advantage > 0 && ratio > 1.2) objective = 1.2 * t.advantage, clipped = 1;
  if (t.advantage < 0 && ratio < 0.8) objective = 0.8 * t.advantage, clipped = 1;
  const double divergence = std::exp(d) - d - 1;
  return {-objective + kKl * divergence, divergence, clipped, ratio};
}

// Every advantage with ratios below, within and above the bounds, and references on both sides.
std::vector<Token> tokens() {
  std::vector<Token> list;
  for (const double advantage : {1.5, -2.0, 0.0})
    for (const double ratio : {0.3, 0.78, 0.82, 1.0, 1.18, 1.22, 2.5})
      for (const double d : {-0.75, 0.0, 0.5}) {
        const auto i = static_cast<double>(list.size());
        const double logp = -1.5 - 0.01 * i;
        list.push_back({logp, 0.05 + 0.01 * i, advantage, logp - std::log(ratio), logp + d});
      }
  return list;
}

// The kernel's arrays, and the loss by float32.
struct Rows {
  std::vector<std::int32_t> targets;
  Floats logp, weight, advantage, behaviour, reference;

  explicit Rows(const std::vector<Token>& list) : targets(list.size(), 1) {
    for (const Token& t : list) {
      logp.push_back(static_cast<float>(t.logp));
      weight.push_back(static_cast<float>(t.weight));
      advantage.push_back(static_cast<float>(t.advantage));
      behaviour.push_back(static_cast<float>(t.behaviour));
      reference.push_back(static_cast<float>(t.reference));
    }
  }
  kernels::PolicyShape shape() const { return {static_cast<std::int64_t>(targets.size()), kClip, kKl}; }
  kernels::PolicyRows rows() const {
    return {targets.data(), logp.data(), weight.data(), advantage.data(), behaviour.data(), reference.data()};
  }
  Token token(std::size_t i) const {
    const auto wide = [](float x) { return static_cast<double>(x); };
    return {wide(logp[i]), wide(weight[i]), wide(advantage[i]), wide(behaviour[i]), wide(reference[i])};
  }
};

TEST(PolicyLoss, SumsWhatItsDefinitionSays) {
  const Rows rows(tokens());
  Terms expected{};
  for (std::size_t i = 0; i < rows.targets.size(); ++i) {
    const Token t = rows.token(i);
    const Terms of = terms(t);
    expected.loss += t.weight * of.loss;
    expected.divergence += t.weight * of.divergence;
    expected.clipped += t.weight * of.clipped;
    expected.ratio += t.weight * of.ratio;
  }
  const auto sums = kernels::policy_sums(rows.shape(), rows.rows());
  // All is computed in double.
  EXPECT_NEAR(sums[0], expected.loss, 1e-12);
  EXPECT_NEAR(sums[1], expected.divergence, 1e-12);
  EXPECT_NEAR(sums[2], expected.clipped, 1e-12);
  EXPECT_NEAR(sums[3], expected.ratio, 1e-12);
  EXPECT_GT(expected.clipped, 0);
}

TEST(PolicyLoss, EachTokenByItself) {
  const std::vector<Token> list = tokens();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Rows one({list[i]});
    const Terms of = terms(one.token(0));
    const auto sums = kernels::policy_sums(one.shape(), one.rows());
    EXPECT_NEAR(sums[0], one.token(0).weight * of.loss, 1e-12) << i;
    EXPECT_EQ(sums[2] > 0, of.clipped > 0) << i;
  }
}

TEST(PolicyLoss, ItsDerivativeIsThatOfFiniteDifferences) {
  const Rows rows(tokens());
  Floats gradient(rows.targets.size(), NAN);
  kernels::policy_backward(rows.shape(), rows.rows(), gradient.data());
  int held = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    Token t = rows.token(i);
    const double logp = t.logp, step = 1e-5;
    t.logp = logp + step;
    const double up = terms(t).loss;
    t.logp = logp - step;
    const double down = terms(t).loss;
    const double expected = t.weight * (up - down) / (2 * step);
    EXPECT_NEAR(gradient[i], expected, 1e-6 * (1 + std::abs(expected))) << i;
    t.logp = logp;
    held += static_cast<int>(terms(t).clipped);
  }
  EXPECT_EQ(held, 12) << "two ratios of either advantage lie beyond its bound, with three references";
}

TEST(PolicyLoss, CountsNoRowWithoutATarget) {
  Rows rows({{-1, 1, 1, -1, -1}, {-1, 1, 1, -3, NAN}});
  rows.targets[1] = -1;
  const auto sums = kernels::policy_sums(rows.shape(), rows.rows());
  EXPECT_EQ(sums, (std::array<double, kernels::kPolicySums>{-1, 0, 0, 1}));
  Floats gradient(2, NAN);
  kernels::policy_backward(rows.shape(), rows.rows(), gradient.data());
  EXPECT_EQ(gradient, (Floats{-1, 0}));
}

}  // namespace
}  // namespace hyperrun::testing
