#include "runtime/model/text/word_cache.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/model/text/pair_ranks.h"

namespace hyperrun {
namespace {

using Ids = std::vector<std::int32_t>;

// Ids that differ from word to word; a word that was kept is not asked for again.
TEST(WordCache, GivesEachWordItsIds) {
  WordCache cache;
  std::mt19937 random(1);
  std::vector<std::string> words(20000);
  for (std::string& word : words) word = std::to_string(random() % 6000) + std::string(random() % 9, '\0');
  for (const std::string& word : words) {
    const Ids expected(1 + word.size() % 4, std::stoi(word));
    Ids ids{-1};
    cache.append(word, ids, [&](std::string_view asked, Ids& out) {
      EXPECT_EQ(asked, word);
      out.insert(out.end(), expected.begin(), expected.end());
    });
    EXPECT_EQ(Ids(ids.begin() + 1, ids.end()), expected) << word;
  }
  int asked = 0;
  for (const std::string& word : words) {
    Ids ids;
    cache.append(word, ids, [&](std::string_view, Ids&) { ++asked; });
  }
  EXPECT_EQ(asked, 0);
}

TEST(WordCache, LongWordsAreNotKept) {
  WordCache cache;
  int asked = 0;
  for (int i = 0; i < 2; ++i) {
    Ids ids;
    cache.append(std::string(256, 'a'), ids, [&](std::string_view, Ids&) { ++asked; });
  }
  EXPECT_EQ(asked, 2);
}

TEST(PairRanks, HasThePairsThatWereSet) {
  constexpr std::int32_t kLast = Vocabulary::kMostTokens - 1;
  PairRanks ranks(3);
  ranks.set(0, 0, 5);
  ranks.set(kLast, kLast, PairRanks::kMostRanks - 1);
  ranks.set(1, 2, 0);
  ranks.set(0, 0, 7);
  EXPECT_EQ(ranks.find(0, 0), 7);
  EXPECT_EQ(ranks.find(kLast, kLast), PairRanks::kMostRanks - 1);
  EXPECT_EQ(ranks.find(1, 2), 0);
  EXPECT_EQ(ranks.find(2, 1), -1);
  EXPECT_EQ(ranks.find(kLast, 0), -1);
}

}  // namespace
}  // namespace hyperrun
