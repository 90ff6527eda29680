// Hidden candidates, compared with a linear search through all candidates.
#include "runtime/offload/transfer_slack.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace hyperrun::testing {
namespace {

constexpr std::int32_t kInstrs = 60;
constexpr std::int64_t kLasts = 10;  // ns of each instruction; they run one after another

// Random gaps, some with a rematerialization, and state that is absent at both ends of the Program.
class TransferSlackTest : public ::testing::Test {
 protected:
  void draw(unsigned seed) {
    random_.seed(seed);
    gaps_.clear(), candidates_.clear();
    timeline_ = {};
    for (std::int32_t i = 0; i < kInstrs; ++i) timeline_.add(kLasts * i, kLasts * (i + 1));
    streams_.emplace(timeline_);
    for (int n = 0; n < 40; ++n) {
      const std::int32_t from = any(kInstrs - 3), to = from + 2 + any(kInstrs - from - 2);
      const std::int64_t lasts = 1 + any(12);
      const bool fetches = any(6) > 0;
      if (n % 8 == 0) {
        candidates_.push_back({.first = gaps_.size(), .gaps = 2, .offloads_state = true});
        gaps_.push_back({.from = -1, .to = from, .transfer_ns = lasts, .fetches = fetches});
        gaps_.push_back({.from = to, .to = kInstrs, .transfer_ns = lasts});
        continue;
      }
      candidates_.push_back({.first = gaps_.size()});
      if (n % 5 == 0) candidates_.push_back({.first = gaps_.size(), .producer = 0});
      gaps_.push_back({.from = from, .to = to, .transfer_ns = lasts, .fetches = fetches});
    }
    slack_.emplace(timeline_, gaps_, candidates_);
    for (std::size_t c = candidates_.size(); c-- > 0;)
      for (std::size_t g = candidates_[c].first; g < candidates_[c].first + candidates_[c].gaps; ++g)
        slack_->add(gaps_[g].from + 1, gaps_[g].to - 1, static_cast<std::int32_t>(c));
  }

  std::int32_t any(std::int32_t to) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(to));
  }

  bool waits(const Candidate& c) const {
    return !c.offloads_state && c.producer < 0 && c.first % 9 == 4 && !released_;
  }

  std::int32_t expected(std::int32_t at) const {
    std::int32_t again = IntervalIndex::kNone;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& c = candidates_[i];
      bool helps = false, hides = true;
      for (std::size_t g = c.first; g < c.first + c.gaps; ++g) {
        const Gap& gap = gaps_[g];
        const bool covers = gap.covers(at);
        helps = helps || covers;
        if (gap.from >= 0)
          hides = hides && streams_->has_for_store(gap.from, covers ? at : gap.to, gap.transfer_ns);
        if (gap.to < kInstrs && gap.fetches)
          hides = hides && streams_->has_for_prefetch(covers ? at : gap.from, gap.to, gap.transfer_ns);
      }
      if (!helps || c.taken || gaps_[c.first].taken) continue;
      if (c.producer < 0 && hides && !waits(c)) return static_cast<std::int32_t>(i);
      if (c.producer >= 0 && again == IntervalIndex::kNone) again = static_cast<std::int32_t>(i);
    }
    return again;
  }

  void take(Candidate& c) {
    c.taken = true;
    for (std::size_t i = c.first; i < c.first + c.gaps; ++i) {
      gaps_[i].taken = true;
      if (c.producer >= 0) continue;
      if (gaps_[i].from >= 0) streams_->store(gaps_[i].from, gaps_[i].transfer_ns);
      if (gaps_[i].to < kInstrs && gaps_[i].fetches) streams_->prefetch(gaps_[i].to, gaps_[i].transfer_ns);
    }
    if (c.producer < 0) slack_->use(c);
  }

  std::mt19937 random_;
  Timeline timeline_;
  std::vector<Gap> gaps_;
  std::vector<Candidate> candidates_;
  std::optional<StreamTime> streams_;
  std::optional<TransferSlack> slack_;
  bool released_ = false;  // no candidate waits for its state any longer
};

TEST_F(TransferSlackTest, FindsTheSameAsALinearSearch) {
  int moved = 0, again = 0, none = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    draw(seed);
    for (int n = 0; n < 120; ++n) {
      released_ = n > 60;
      const std::int32_t at = any(kInstrs);
      const std::int32_t found = slack_->first_at(at, [&](const Candidate& c) { return waits(c); });
      ASSERT_EQ(found, expected(at)) << seed << ", " << n;
      if (found == IntervalIndex::kNone) {
        ++none;
        continue;
      }
      Candidate& c = candidates_[static_cast<std::size_t>(found)];
      (c.producer < 0 ? moved : again) += 1;
      if (any(3) > 0) take(c);
    }
  }
  EXPECT_GT(moved, 500);
  EXPECT_GT(again, 100);
  EXPECT_GT(none, 100);
}

// A gap becomes shorter when a rematerialization needs its buffer sooner.
TEST_F(TransferSlackTest, IgnoresTheRestOfAShortenedGap) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    draw(seed);
    for (int n = 0; n < 120; ++n) {
      if (n % 10 == 9) {
        Gap& g = gaps_[static_cast<std::size_t>(any(static_cast<std::int32_t>(gaps_.size())))];
        if (g.from >= 0 && g.to < kInstrs && !g.taken && g.to - g.from > 3)
          g.to -= 1 + any(g.to - g.from - 2);
      }
      const std::int32_t at = any(kInstrs);
      const std::int32_t found = slack_->first_at(at, [](const Candidate&) { return false; });
      if (found == IntervalIndex::kNone || candidates_[static_cast<std::size_t>(found)].producer >= 0)
        continue;
      released_ = true;
      ASSERT_EQ(found, expected(at)) << seed << ", " << n;
      take(candidates_[static_cast<std::size_t>(found)]);
    }
  }
}

}  // namespace
}  // namespace hyperrun::testing
