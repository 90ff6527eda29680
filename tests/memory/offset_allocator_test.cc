#include "memory/offset_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "memory/delay_address_reuse.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using Lifetimes = std::vector<Lifetime>;

// Checks every pair by brute force.
void expect_valid(const Lifetimes& l, const Assignment& a, std::int64_t alignment) {
  ASSERT_EQ(a.offsets.size(), l.size());
  std::int64_t top = 0;
  for (std::size_t i = 0; i < l.size(); ++i) {
    const std::int64_t begin = a.offsets[i].value, end = begin + l[i].bytes.value;
    ASSERT_EQ(begin % alignment, 0);
    ASSERT_GE(begin, 0);
    top = std::max(top, (end + alignment - 1) / alignment * alignment);
    for (std::size_t j = 0; j < i; ++j) {
      if (l[i].first > l[j].last || l[j].first > l[i].last) continue;
      const std::int64_t other = a.offsets[j].value;
      ASSERT_TRUE(end <= other || other + l[j].bytes.value <= begin || l[i].bytes.value == 0 ||
                  l[j].bytes.value == 0)
          << i << " and " << j;
    }
  }
  EXPECT_EQ(a.peak.value, top);
}

// The largest live sum, position by position.
std::int64_t brute_max_live(const Lifetimes& l, std::int64_t alignment) {
  std::int64_t most = 0;
  for (const Lifetime& at : l) {
    std::int64_t live = 0;
    for (const Lifetime& o : l) {
      if (o.first <= at.first && at.first <= o.last)
        live += (o.bytes.value + alignment - 1) / alignment * alignment;
    }
    most = std::max(most, live);
  }
  return most;
}

Lifetimes random_lifetimes(std::mt19937& rng, int n, int span, int longest, int most_bytes) {
  Lifetimes l;
  for (int i = 0; i < n; ++i) {
    const auto first = static_cast<std::int32_t>(rng() % static_cast<unsigned>(span));
    const auto length = static_cast<std::int32_t>(rng() % static_cast<unsigned>(longest));
    l.push_back(
        {first, first + length, Bytes(static_cast<std::int64_t>(rng() % static_cast<unsigned>(most_bytes)))});
  }
  return l;
}

// Lifetimes of a training step: weights and gradients throughout, activations from forward to backward,
// scratch memory at single positions.
Lifetimes training_step(std::mt19937& rng, int layers, int per_layer) {
  Lifetimes l;
  const int end = 2 * layers * per_layer;
  auto bytes = [&] { return Bytes(static_cast<std::int64_t>(1 + rng() % 64) * 4096); };
  for (int i = 0; i < layers * 4; ++i) l.push_back({0, end, bytes()});
  for (int i = 0; i < layers * per_layer; ++i) {
    const bool saved = rng() % 3 != 0;
    const int last = saved ? end - i : i + 1 + static_cast<int>(rng() % 6);
    l.push_back({i, last, bytes()});
    l.push_back({i, i, bytes()});
    l.push_back({end - i, end - i + static_cast<int>(rng() % 4), bytes()});
  }
  return l;
}

TEST(OffsetAllocator, EmptyProgram) {
  EXPECT_EQ(assign_offsets({}).peak, Bytes(0));
  const Lifetimes nothing = {{0, 5, Bytes(0)}};
  EXPECT_EQ(assign_offsets(nothing).peak, Bytes(0));
}

TEST(OffsetAllocator, EndsAreInclusive) {
  const Lifetimes touching = {{0, 3, Bytes(100)}, {3, 5, Bytes(100)}};
  EXPECT_EQ(assign_offsets(touching).peak, Bytes(256));
  const Lifetimes apart = {{0, 2, Bytes(100)}, {3, 5, Bytes(100)}};
  EXPECT_EQ(assign_offsets(apart).peak, Bytes(128));
}

TEST(OffsetAllocator, NestedLifetimesReachTheBound) {
  Lifetimes l;
  for (int i = 0; i < 1000; ++i) l.push_back({i, 2000 - i, Bytes(64 * (1 + i * 7 % 13))});
  EXPECT_EQ(assign_offsets(l).peak, max_live(l));
}

TEST(OffsetAllocator, RandomProgramsAreValidAndTight) {
  std::mt19937 rng(7);
  double worst = 1, sum = 0;
  const int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const int n = 1 + static_cast<int>(rng() % 120);
    const std::int64_t alignment = std::int64_t{1} << (rng() % 8);
    const Lifetimes l = random_lifetimes(rng, n, 200, 1 + static_cast<int>(rng() % 100), 10000);
    const Assignment a = assign_offsets(l, Bytes(alignment));
    expect_valid(l, a, alignment);
    const std::int64_t bound = brute_max_live(l, alignment);
    ASSERT_EQ(max_live(l, Bytes(alignment)).value, bound);
    ASSERT_GE(a.peak.value, bound);
    if (bound == 0) continue;
    const double ratio = static_cast<double>(a.peak.value) / static_cast<double>(bound);
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  RecordProperty("mean_ratio", std::to_string(sum / rounds));
  RecordProperty("worst_ratio", std::to_string(worst));
  EXPECT_LT(sum / rounds, 1.06);
  EXPECT_LT(worst, 1.4);
}

TEST(OffsetAllocator, TrainingStepIsNearTheBound) {
  std::mt19937 rng(3);
  for (const int layers : {2, 8, 24}) {
    const Lifetimes l = training_step(rng, layers, 20);
    const Assignment a = assign_offsets(l);
    expect_valid(l, a, 64);
    EXPECT_LT(static_cast<double>(a.peak.value), 1.03 * static_cast<double>(max_live(l).value));
  }
}

// The fewest positions between two buffers that share addresses.
std::int32_t shortest_reuse(const Lifetimes& l, const Assignment& a) {
  std::int32_t shortest = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < l.size(); ++i)
    for (std::size_t j = 0; j < l.size(); ++j)
      if (l[i].last < l[j].first && a.offsets[i] < a.offsets[j] + l[j].bytes &&
          a.offsets[j] < a.offsets[i] + l[i].bytes)
        shortest = std::min(shortest, l[j].first - l[i].last - 1);
  return shortest;
}

// Two addresses are enough for buffers that follow one another. A short high peak leaves them room for ten.
TEST(DelayAddressReuse, ReusesAddressesLaterWhereThereIsRoom) {
  Lifetimes l;
  for (int i = 0; i < 200; ++i) l.push_back({i, i + 1, Bytes(64)});
  Assignment tight = assign_offsets(l);
  ASSERT_EQ(tight.peak, Bytes(128));
  ASSERT_EQ(shortest_reuse(l, tight), 0);
  delay_address_reuse(l, tight);
  EXPECT_EQ(shortest_reuse(l, tight), 0) << "there is no room";
  for (const Lifetime high : {Lifetime{230, 230, Bytes(640)}, Lifetime{230, 400, Bytes(640)}}) {
    l.push_back(high);
    Assignment a = assign_offsets(l);
    ASSERT_EQ(a.peak, Bytes(640));
    ASSERT_EQ(shortest_reuse(l, a), 0);
    delay_address_reuse(l, a);
    expect_valid(l, a, 64);
    EXPECT_GE(shortest_reuse(l, a), kReuseDistance / 4);
    EXPECT_EQ(a.peak, Bytes(640));
    l.pop_back();
  }
}

// Long-lived buffers are in the way and are not moved.
TEST(DelayAddressReuse, KeepsRandomProgramsValidAndNoHigher) {
  std::mt19937 rng(13);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t alignment = std::int64_t{1} << (rng() % 8);
    const Lifetimes l = round % 3 == 0 ? training_step(rng, 1 + round % 7, 20)
                                       : random_lifetimes(rng, 1 + static_cast<int>(rng() % 150), 400,
                                                          1 + static_cast<int>(rng() % 150), 10000);
    Assignment a = assign_offsets(l, Bytes(alignment));
    const Assignment before = a;
    delay_address_reuse(l, a, Bytes(alignment), 1 + static_cast<std::int32_t>(rng() % 20));
    expect_valid(l, a, alignment);
    EXPECT_LE(a.peak, before.peak);
    const auto highest = [&](const Assignment& of) {
      Bytes end{};
      for (std::size_t i = 0; i < l.size(); ++i) end = std::max(end, of.offsets[i] + l[i].bytes);
      return end;
    };
    EXPECT_LE(highest(a), highest(before));
    for (std::size_t i = 0; i < l.size(); ++i) {
      const bool stays = l[i].last - l[i].first > 64;
      ASSERT_TRUE(!stays || a.offsets[i] == before.offsets[i]) << i;
    }
  }
}

// So many buffers that the exact gap search is skipped. Checking every pair would take too long, so live
// buffers are sorted by address at sampled positions and only neighbours are compared.
TEST(OffsetAllocator, HundredThousandBuffers) {
  std::mt19937 rng(11);
  for (const Lifetimes& l :
       {random_lifetimes(rng, 100000, 100000, 30000, 100000), training_step(rng, 1000, 30)}) {
    Assignment a = assign_offsets(l);
    delay_address_reuse(l, a);
    for (int sample = 0; sample < 40; ++sample) {
      const auto at = static_cast<std::int32_t>(rng() % 100000);
      std::vector<std::pair<std::int64_t, std::int64_t>> live;
      for (std::size_t i = 0; i < l.size(); ++i) {
        if (l[i].first <= at && at <= l[i].last && l[i].bytes.value > 0) {
          live.emplace_back(a.offsets[i].value, a.offsets[i].value + l[i].bytes.value);
        }
      }
      std::sort(live.begin(), live.end());
      for (std::size_t i = 1; i < live.size(); ++i) ASSERT_LE(live[i - 1].second, live[i].first);
      ASSERT_TRUE(live.empty() || live.back().second <= a.peak.value);
    }
    const double ratio = static_cast<double>(a.peak.value) / static_cast<double>(max_live(l).value);
    RecordProperty("ratio_" + std::to_string(l.size()), std::to_string(ratio));
    EXPECT_LT(ratio, 1.5);
  }
}

TEST(OffsetAllocator, BugsAreCaught) {
  const Lifetimes backwards = {{3, 2, Bytes(1)}};
  EXPECT_THROW(assign_offsets(backwards), Error);
  EXPECT_THROW(assign_offsets({}, Bytes(48)), Error);
}

}  // namespace
}  // namespace hyperrun
