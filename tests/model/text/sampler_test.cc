#include "runtime/model/text/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace hyperrun {
namespace {

std::vector<std::int32_t> numbers(std::size_t n) {
  std::vector<std::int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// The first `count` starts, batch after batch.
std::vector<std::int64_t> starts(const Sampler& sampler, std::int32_t batch, std::int64_t count) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(sampler.start(i / batch, i % batch));
  return out;
}

TEST(Sampler, EachWindowOncePerEpochAndEachTokenOnce) {
  constexpr std::int32_t kSequence = 7, kBatch = 4;
  const auto tokens = numbers(200);
  const Sampler sampler(tokens, kSequence, kBatch, 1);
  const std::int64_t windows = sampler.windows_per_epoch();
  ASSERT_EQ(windows, 28);  // 28 * 7 = 196 inputs and one more target; 3 tokens are over
  const auto all = starts(sampler, kBatch, 5 * windows);
  std::set<std::vector<std::int64_t>> orders;
  for (int epoch = 0; epoch < 5; ++epoch) {
    const std::vector<std::int64_t> order(all.begin() + epoch * windows, all.begin() + (epoch + 1) * windows);
    std::vector<int> as_input(tokens.size());
    for (const std::int64_t start : order) {
      ASSERT_LE(start + kSequence, std::ssize(tokens) - 1);
      for (std::int64_t t = 0; t < kSequence; ++t) ++as_input[static_cast<std::size_t>(start + t)];
    }
    EXPECT_EQ(std::ranges::count(as_input, 1), windows * kSequence);
    EXPECT_EQ(std::ranges::count(as_input, 0), std::ssize(tokens) - windows * kSequence);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(Sampler, TheLeftOverTokensChangeBetweenEpochs) {
  const auto tokens = numbers(200);
  const Sampler sampler(tokens, 66, 3, 1);  // 3 windows, one token over: the offset is 0 or 1
  std::set<std::int64_t> offsets;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch)
    offsets.insert(std::min({sampler.start(epoch, 0), sampler.start(epoch, 1), sampler.start(epoch, 2)}));
  EXPECT_EQ(offsets, (std::set<std::int64_t>{0, 1}));
}

TEST(Sampler, TargetsAreTheNextTokens) {
  const auto tokens = numbers(100);
  const Sampler sampler(tokens, 8, 4, 9);
  std::vector<std::int32_t> ids(32), targets(32);
  sampler.fill(3, 0, 4, ids.data(), targets.data());
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t t = 0; t < 8; ++t) {
      EXPECT_EQ(ids[row * 8 + t],
                sampler.start(3, static_cast<std::int64_t>(row)) + static_cast<std::int64_t>(t));
      EXPECT_EQ(targets[row * 8 + t], ids[row * 8 + t] + 1);
    }
}

// The parts of a batch have the same samples, however it is cut in rows and columns.
TEST(Sampler, SlicesAgreeWithTheWhole) {
  constexpr std::int64_t kBatch = 6, kSequence = 12;
  const auto tokens = numbers(500);
  const Sampler sampler(tokens, kSequence, kBatch, 5);
  std::vector<std::int32_t> ids(kBatch * kSequence), targets(ids);
  for (std::int64_t step = 0; step < 20; ++step) {
    sampler.fill(step, 0, kBatch, ids.data(), targets.data());
    for (const std::int64_t rows : {1, 2, 3})
      for (const std::int32_t width : {3, 4, 6}) {
        std::vector<std::int32_t> part(static_cast<std::size_t>(rows * width)), part_targets(part);
        for (std::int64_t first = 0; first < kBatch; first += rows)
          for (std::int32_t from = 0; from < kSequence; from += width) {
            sampler.fill(step, first, rows, {from, width}, part.data(), part_targets.data());
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t c = 0; c < width; ++c) {
                const auto whole = static_cast<std::size_t>((first + r) * kSequence + from + c);
                ASSERT_EQ(part[static_cast<std::size_t>(r * width + c)], ids[whole]);
                ASSERT_EQ(part_targets[static_cast<std::size_t>(r * width + c)], targets[whole]);
              }
          }
      }
  }
}

TEST(Sampler, OnlyTheSeedMatters) {
  const auto tokens = numbers(1000);
  const Sampler a(tokens, 10, 4, 1), same(tokens, 10, 4, 1), other(tokens, 10, 4, 2), wide(tokens, 10, 8, 1);
  EXPECT_EQ(starts(a, 4, 300), starts(same, 4, 300));
  EXPECT_NE(starts(a, 4, 300), starts(other, 4, 300));
  EXPECT_EQ(starts(a, 4, 296), starts(wide, 8, 296));  // the batch only groups one sequence of samples
}

// A changed order would break the resumption of older runs.
TEST(Sampler, OrderIsStable) {
  const auto tokens = numbers(1000);
  EXPECT_THAT(starts(Sampler(tokens, 10, 4, 1), 4, 8),
              ::testing::ElementsAre(266, 886, 466, 296, 346, 456, 156, 306));
}

// A run goes on with the next sample, whatever batch it had before.
TEST(Sampler, GoesOnWithAnotherBatch) {
  const auto tokens = numbers(1000);
  const Sampler whole(tokens, 10, 1, 1);
  for (const std::int32_t batch : {1, 4}) {
    Sampler rest(tokens, 10, batch, 1);
    rest.begin(4, 8);  // after four steps of two
    EXPECT_EQ(rest.first_of(4), 8);
    EXPECT_EQ(rest.first_of(6), 8 + 2 * batch);
    for (std::int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(rest.start(4 + i / batch, i % batch), whole.start(8 + i, 0)) << batch << " " << i;
  }
}

TEST(Sampler, SequentialForEvaluation) {
  const auto tokens = numbers(31);
  const Sampler sampler(tokens, 10, 2, 1, SampleOrder::kSequential);
  EXPECT_THAT(starts(sampler, 2, 6), ::testing::ElementsAre(0, 10, 20, 0, 10, 20));
}

TEST(Sampler, OneWindow) {
  const auto tokens = numbers(9);
  const Sampler sampler(tokens, 8, 2, 1);
  EXPECT_EQ(sampler.windows_per_epoch(), 1);
  EXPECT_THAT(starts(sampler, 2, 4), ::testing::ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace hyperrun
