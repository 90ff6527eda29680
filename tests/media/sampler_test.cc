#include "runtime/media/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace hyperrun {
namespace {

// Sample i has i patches, and i frames more where i is odd.
std::vector<MediaUnits> numbered(std::int64_t n) {
  std::vector<MediaUnits> units;
  for (std::int64_t i = 0; i < n; ++i) units.push_back({i, i % 2 == 0 ? 0 : i});
  return units;
}

MediaSampler sampler(std::int64_t samples, MediaSampling sampling) { return {numbered(samples), sampling}; }

std::vector<MediaExample> examples(const MediaSampler& from, std::int64_t steps) {
  std::vector<MediaExample> all;
  for (std::int64_t step = 0; step < steps; ++step)
    for (MediaExample& e : from.batch(step)) all.push_back(std::move(e));
  return all;
}

TEST(MediaSampler, EachSampleOncePerEpochInAnotherOrder) {
  constexpr std::int64_t kSamples = 21;  // no multiple of the batch: epochs begin within batches
  const auto all = examples(sampler(kSamples, {.batch = 4, .seed = 1}), 21);  // four epochs
  std::set<std::vector<std::int32_t>> orders;
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int32_t> order;
    for (std::int64_t i = 0; i < kSamples; ++i)
      order.push_back(all[static_cast<std::size_t>(epoch * kSamples + i)].samples.at(0));
    orders.insert(order);
    std::ranges::sort(order);
    for (std::int32_t i = 0; i < kSamples; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST(MediaSampler, UnitsAreThoseOfTheSamples) {
  for (const MediaExample& e : examples(sampler(50, {.batch = 8, .least = 1, .most = 5, .seed = 3}), 40)) {
    MediaUnits sum;
    for (const std::int32_t s : e.samples) sum += numbered(50)[static_cast<std::size_t>(s)];
    EXPECT_EQ(e.units, sum);
  }
}

// Every number of samples from least to most, each about equally often: by chi-square with 3 degrees of
// freedom (16.3 is the 0.1 % level).
TEST(MediaSampler, ExamplesDifferInTheirNumberOfSamples) {
  const auto all = examples(sampler(1000, {.batch = 16, .least = 2, .most = 5, .seed = 4}), 250);
  std::map<std::size_t, int> count;
  for (const MediaExample& e : all) ++count[e.samples.size()];
  ASSERT_THAT(count, ::testing::SizeIs(4));
  double chi = 0;
  for (const auto& [size, n] : count) {
    EXPECT_TRUE(size >= 2 && size <= 5);
    chi += (n - 1000) * (n - 1000) / 1000.0;
  }
  EXPECT_LT(chi, 16.3);
}

// 100 examples of up to 3 samples take one epoch of 300.
TEST(MediaSampler, NoSampleTwiceInAnEpoch) {
  std::set<std::int32_t> seen;
  for (const MediaExample& e : examples(sampler(300, {.batch = 10, .least = 1, .most = 3, .seed = 5}), 10))
    for (const std::int32_t s : e.samples) EXPECT_TRUE(seen.insert(s).second) << s;
}

TEST(MediaSampler, OnlySeedAndStepMatter) {
  const MediaSampling sampling{.batch = 4, .least = 1, .most = 3, .seed = 6};
  MediaSampling other = sampling, wide = sampling;
  other.seed = 7, wide.batch = 8;
  const auto all = examples(sampler(70, sampling), 20);
  EXPECT_EQ(sampler(70, sampling).example(13, 2), all[13 * 4 + 2]);  // asked for out of turn
  EXPECT_EQ(examples(sampler(70, sampling), 20), all);
  EXPECT_NE(examples(sampler(70, other), 20), all);
  EXPECT_EQ(examples(sampler(70, wide), 10), all);  // the batch only groups one sequence of examples
}

// A changed order would break the resumption of older runs.
TEST(MediaSampler, OrderIsStable) {
  std::vector<std::int32_t> drawn;
  for (const MediaExample& e : examples(sampler(1000, {.batch = 4, .least = 1, .most = 2, .seed = 1}), 1))
    drawn.insert(drawn.end(), e.samples.begin(), e.samples.end());
  EXPECT_THAT(drawn, ::testing::ElementsAre(565, 668, 206, 180, 19, 104));
}

TEST(MediaSampler, SequentialForEvaluation) {
  std::vector<std::int32_t> drawn;
  for (const MediaExample& e : examples(sampler(3, {.batch = 2, .order = MediaOrder::kSequential}), 3))
    drawn.insert(drawn.end(), e.samples.begin(), e.samples.end());
  EXPECT_THAT(drawn, ::testing::ElementsAre(0, 1, 2, 0, 1, 2));
}

}  // namespace
}  // namespace hyperrun
