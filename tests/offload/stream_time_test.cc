// The free time of the transfer streams, compared with simulated queues.
#include "runtime/offload/stream_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace hyperrun::testing {
namespace {

constexpr std::int32_t kInstrs = 12;
constexpr std::int64_t kLasts = 10;  // ns of each instruction; they run one after another

using Transfers = std::vector<std::pair<std::int32_t, std::int64_t>>;  // (instruction, ns)

std::int64_t begin_of(std::int32_t instr) { return kLasts * instr; }

Timeline timeline() {
  Timeline t;
  for (std::int32_t i = 0; i < kInstrs; ++i) t.add(begin_of(i), begin_of(i + 1));
  return t;
}

// Simulates the queue of stores with one more, and tests whether all stores from before `by` end in time.
// Stores that become possible later than the new one are assumed to follow without idle time.
bool stores_in_time(Transfers all, std::pair<std::int32_t, std::int64_t> one, std::int32_t by) {
  all.push_back(one);
  std::ranges::stable_sort(all, {}, [](const auto& s) { return s.first; });
  std::int64_t free = 0;
  for (const auto& [from, lasts] : all)
    if (from < by) free = (from <= one.first ? std::max(free, begin_of(from + 1)) : free) + lasts;
  return free <= begin_of(by);
}

// The same for prefetches, backwards in time.
bool prefetches_in_time(Transfers all, std::pair<std::int32_t, std::int64_t> one, std::int32_t since) {
  all.push_back(one);
  std::ranges::stable_sort(all, std::greater{}, [](const auto& p) { return p.first; });
  std::int64_t free = begin_of(kInstrs);
  for (const auto& [to, lasts] : all)
    if (to > since) free = (to >= one.first ? std::min(free, begin_of(to)) : free) - lasts;
  return free >= (since < 0 ? 0 : begin_of(since));
}

TEST(StreamTime, EqualsSimulatedQueues) {
  std::mt19937 random(3);
  int yes = 0, no = 0;
  for (int run = 0; run < 400; ++run) {
    StreamTime time(timeline());
    Transfers stores, prefetches;
    for (int n = 0; n < 6; ++n) {
      const auto from = static_cast<std::int32_t>(random() % (kInstrs - 1));
      const auto by = from + 1 + static_cast<std::int32_t>(random() % static_cast<unsigned>(kInstrs - from));
      const std::int64_t lasts = 1 + static_cast<std::int64_t>(random() % 25);
      const bool store = time.has_for_store(from, by, lasts);
      EXPECT_EQ(store, stores_in_time(stores, {from, lasts}, by)) << run;
      const std::int32_t to = kInstrs - 1 - from, since = kInstrs - 1 - by;
      const bool prefetch = time.has_for_prefetch(since, to, lasts);
      EXPECT_EQ(prefetch, prefetches_in_time(prefetches, {to, lasts}, since)) << run;
      std::int32_t first = 0, last = kInstrs - 1;
      while (first < kInstrs && !time.has_for_store(from, first, lasts)) ++first;
      while (last >= 0 && !time.has_for_prefetch(last, to, lasts)) --last;
      EXPECT_EQ(time.first_for_store(from, 0, kInstrs - 1, lasts), first) << run;
      EXPECT_EQ(time.last_for_prefetch(0, kInstrs - 1, to, lasts), last) << run;
      // Transfers without free time are not added.
      if (store) time.store(from, lasts), stores.emplace_back(from, lasts);
      if (prefetch) time.prefetch(to, lasts), prefetches.emplace_back(to, lasts);
      (store ? yes : no) += 1;
    }
  }
  EXPECT_GT(yes, 400);
  EXPECT_GT(no, 400);
}

}  // namespace
}  // namespace hyperrun::testing
