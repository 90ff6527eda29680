#include "runtime/device/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/device/kernels/normal_blocks.h"
#include "runtime/device/kernels/sampling.h"
#include "tests/kernels/common.h"

namespace hyperrun::testing {
namespace {

using Sizes = std::vector<std::int64_t>;
using Block = std::array<std::uint32_t, 4>;

// Known answers published with the reference implementation (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(kernels::philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(kernels::philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(kernels::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Floats whole(std::uint64_t seed, std::uint64_t key, const Sizes& global) {
  std::int64_t n = 1;
  for (const std::int64_t g : global) n *= g;
  const Sizes offset(global.size());
  Floats out(static_cast<std::size_t>(n));
  kernels::fill_normal(seed, key, 1.0F, {global, offset, global}, out.data());
  return out;
}

TEST(FillNormal, AnyShardHoldsTheBitsOfTheWhole) {
  const Sizes global = {5, 7, 6};
  const Floats all = whole(1, 2, global);
  for (const auto& [offset, local] : std::vector<std::array<Sizes, 2>>{
           {Sizes{0, 0, 0}, Sizes{5, 7, 6}},
           {Sizes{2, 0, 0}, Sizes{3, 7, 6}},
           {Sizes{0, 3, 0}, Sizes{5, 2, 6}},
           {Sizes{1, 2, 3}, Sizes{2, 3, 1}},
           {Sizes{4, 6, 5}, Sizes{1, 1, 1}},
           {Sizes{0, 0, 0}, Sizes{5, 0, 6}},
       }) {
    Floats part(static_cast<std::size_t>(local[0] * local[1] * local[2]));
    kernels::fill_normal(1, 2, 1.0F, {global, offset, local}, part.data());
    std::size_t next = 0;
    for (std::int64_t a = 0; a < local[0]; ++a) {
      for (std::int64_t b = 0; b < local[1]; ++b) {
        for (std::int64_t c = 0; c < local[2]; ++c) {
          const std::int64_t flat = ((a + offset[0]) * 7 + b + offset[1]) * 6 + c + offset[2];
          ASSERT_EQ(part[next++], all[flat]) << flat;
        }
      }
    }
  }
}

TEST(FillNormal, IsTheInverseNormalDistributionOfTheWord) {
  const Sizes global = {40000};
  const Floats x = whole(9, 0x1234567890abcdef, global);
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    const auto word = kernels::philox({i / 4, 0, 0x90abcdef, 0x12345678}, {9, 0})[i % 4];
    const double p = (word + 0.5) * 0x1p-32;
    const double tail = std::min(p, 1 - p),
                 reached = 0.5 * std::erfc(std::abs(double{x[i]}) / std::sqrt(2.0));
    ASSERT_NEAR(reached / tail, 1.0, 3e-6) << x[i];  // seven digits of x, times the slope in the tail
    ASSERT_EQ(x[i] < 0, p < 0.5);
  }
}

// Vectors and single numbers agree, across the carry of the counter's lower half.
TEST(FillNormal, VectorsHoldTheBitsOfSingleWords) {
  const kernels::NormalStream stream{{7, 8}, 0x1234567890abcdef, 0.02};
  const std::uint64_t first = (std::uint64_t{1} << 32) - 50;
  Floats x(4 * 103);
  kernels::normal_blocks(stream, first, 103, x.data());
  for (std::uint64_t b = 0; b < 103; ++b) {
    const std::uint64_t c = first + b;
    const auto words = kernels::philox(
        {static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32), 0x90abcdef, 0x12345678}, {7, 8});
    for (std::size_t w = 0; w < 4; ++w) ASSERT_EQ(x[4 * b + w], kernels::normal_of(words[w], 0.02)) << b;
  }
}

// Keys of two tensors.
constexpr std::uint64_t kA = 0xaf63dc4c8601ec8c, kB = 0xaf63df4c8601f1a5;

TEST(FillNormal, HasTheMomentsAndNoTwoTensorsAlike) {
  const Sizes global = {200, 500};
  const Floats x = whole(3, kA, global), y = whole(3, kB, global);
  const Floats z = whole(4, kA, global);
  double mean = 0, square = 0, with_y = 0, with_z = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean += x[i];
    square += double{x[i]} * x[i];
    with_y += double{x[i]} * y[i];
    with_z += double{x[i]} * z[i];
  }
  const auto n = static_cast<double>(x.size());
  const double sigma = 1 / std::sqrt(n);  // of each estimate; the generator is fixed, so this cannot flake
  EXPECT_NEAR(mean / n, 0, 4 * sigma);
  EXPECT_NEAR(square / n, 1, 4 * std::sqrt(2.0) * sigma);
  EXPECT_NEAR(with_y / n, 0, 4 * sigma);
  EXPECT_NEAR(with_z / n, 0, 4 * sigma);
}

TEST(FillNormal, ScalesByTheDeviation) {
  const Sizes global = {9}, offset = {0};
  const Floats unit = whole(1, 2, global);
  Floats scaled(9);
  kernels::fill_normal(1, 2, 0.5F, {global, offset, global}, scaled.data());
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(scaled[i], 0.5F * unit[i]);
}

std::int32_t sample(const Floats& logits, const kernels::Sampling& how, std::int64_t position,
                    std::int64_t row = 0) {
  const auto vocab = static_cast<std::int64_t>(logits.size());
  std::vector<char> scratch(static_cast<std::size_t>(kernels::sample_token_scratch_bytes(vocab)));
  return kernels::sample_token(vocab, logits.data(), how, position, row, scratch.data());
}

TEST(Sampling, GreedyTakesTheFirstOfTheBest) {
  EXPECT_EQ(sample({0, 3, 1, 3}, {}, 0), 1);
  EXPECT_EQ(sample({0, 3, 1, 4}, {.temperature = 5, .top_k = 1}, 0), 3);
}

// The log probability is among all tokens at the temperature, whatever top-k and top-p leave.
TEST(Sampling, KnowsTheLogProbabilityOfAToken) {
  const Floats logits{0.5F, -1, 2, 0.25F, -3, 1.75F, 0, 4, -0.5F};
  Floats scratch(logits.size());
  for (const double temperature : {0.0, 0.6, 1.0, 2.5}) {
    const double scale = temperature > 0 ? 1 / temperature : 1;
    double sum = 0;
    for (const float l : logits) sum += std::exp(scale * static_cast<double>(l));
    for (std::int32_t token = 0; token < std::ssize(logits); ++token) {
      const double expected =
          scale * static_cast<double>(logits[static_cast<std::size_t>(token)]) - std::log(sum);
      EXPECT_NEAR(kernels::log_prob_of(std::ssize(logits), logits.data(), token, temperature, scratch.data()),
                  expected, 1e-6 * (1 - expected))
          << token << " at " << temperature;
    }
  }
}

TEST(Sampling, KnowsWhatNothingCanBeDrawnFrom) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(kernels::all_finite(3, Floats{0, -1e38F, std::numeric_limits<float>::max()}.data()));
  for (const float bad : {kInfinite, -kInfinite, std::nanf("")})
    for (std::size_t at : {0, 8, 16}) {
      Floats logits(17, 1);
      logits[at] = bad;
      EXPECT_FALSE(kernels::all_finite(17, logits.data())) << bad << " at " << at;
    }
}

TEST(Sampling, FrequenciesFollowTheSoftmax) {
  const Floats logits = {0.0F, 1.0F, 2.0F, -1.0F};
  constexpr int kDraws = 20000;
  const double temperature = 2;
  std::array<double, 4> expected{}, seen{};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += expected[i] = std::exp(logits[i] / temperature);
  for (int p = 0; p < kDraws; ++p) seen[sample(logits, {.temperature = 2, .seed = 5}, p)] += 1.0 / kDraws;
  for (std::size_t i = 0; i < 4; ++i) {
    const double share = expected[i] / sum;
    EXPECT_NEAR(seen[i], share, 4 * std::sqrt(share * (1 - share) / kDraws));
  }
}

TEST(Sampling, TopKWithTiesTakesExactlyK) {
  const Floats logits = {1, 2, 1, 5, 1, 1};
  std::set<std::int32_t> seen;
  for (int p = 0; p < 2000; ++p) seen.insert(sample(logits, {.temperature = 10, .top_k = 4, .seed = 5}, p));
  EXPECT_EQ(seen, (std::set<std::int32_t>{0, 1, 2, 3}));
}

// With probabilities 0.5, 0.3, 0.15, 0.05 a top_p of half takes the first alone, 0.6 two of them, 0.9 three.
// The kept ones share the probability anew.
TEST(Sampling, TopPTakesTheLikeliestThatHaveSoMuchTogether) {
  const Floats logits = {std::log(0.15F), std::log(0.5F), std::log(0.05F), std::log(0.3F)};
  const auto seen = [&](double top_p, std::int64_t top_k) {
    std::set<std::int32_t> tokens;
    for (int p = 0; p < 2000; ++p)
      tokens.insert(sample(logits, {.temperature = 1, .top_k = top_k, .top_p = top_p, .seed = 5}, p));
    return tokens;
  };
  EXPECT_EQ(seen(0.45, 0), (std::set<std::int32_t>{1}));
  EXPECT_EQ(seen(0.6, 0), (std::set<std::int32_t>{1, 3}));
  EXPECT_EQ(seen(0.9, 0), (std::set<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(seen(1, 0), (std::set<std::int32_t>{0, 1, 2, 3}));
  // Among the two likeliest the first has 0.625.
  EXPECT_EQ(seen(0.6, 2), (std::set<std::int32_t>{1}));
  EXPECT_EQ(seen(1e-9, 0), (std::set<std::int32_t>{1}));
  double first = 0;
  for (int p = 0; p < 20000; ++p)
    first += sample(logits, {.temperature = 1, .top_p = 0.6, .seed = 5}, p) == 1 ? 1.0 / 20000 : 0;
  EXPECT_NEAR(first, 0.625, 4 * std::sqrt(0.625 * 0.375 / 20000));
}

TEST(Sampling, DependsOnSeedPositionAndRowOnly) {
  const Floats logits(1000, 0.0F);
  const kernels::Sampling how{.temperature = 1, .seed = 5};
  EXPECT_EQ(sample(logits, how, 3, 4), sample(logits, how, 3, 4));
  EXPECT_NE(sample(logits, how, 3, 4), sample(logits, how, 4, 3));
  EXPECT_NE(sample(logits, how, 3, 4), sample(logits, {.temperature = 1, .seed = 6}, 3, 4));
}

}  // namespace
}  // namespace hyperrun::testing
