// The trainer and the encoder, compared with the plainest form of the algorithm, which counts everything
// anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/base/error.h"
#include "runtime/model/text/bpe_train.h"
#include "runtime/model/text/lossy_utf8.h"
#include "runtime/model/text/pre_tokenizer.h"
#include "runtime/model/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using Ids = std::vector<std::int32_t>;

Ids merged(const Ids& ids, const Bpe::Merge& merge) {
  Ids out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool here = i + 1 < ids.size() && ids[i] == merge.left && ids[i + 1] == merge.right;
    out.push_back(here ? merge.result : ids[i]);
    i += here;
  }
  return out;
}

// All occurrences of words in the text, as ids of bytes.
std::vector<Ids> byte_words(std::string_view text, const Tokenizer& bytes) {
  std::vector<Ids> words;
  gpt2_words(/*raw=*/true)->cut({text}, [&](TextPiece word) { words.push_back(bytes.encode(word.text)); });
  return words;
}

std::vector<Bpe::Merge> naive_merges(std::string_view text, std::int32_t vocab_size) {
  const Tokenizer bytes = Tokenizer::train("", Tokenizer::kMinVocab);
  std::vector<std::string> tokens = train_bpe("", Tokenizer::kMinVocab).tokens;
  std::vector<Ids> words = byte_words(text, bytes);
  std::vector<Bpe::Merge> merges;
  std::set<std::pair<std::int32_t, std::int32_t>> done;
  while (std::ssize(tokens) < vocab_size) {
    std::map<std::pair<std::int32_t, std::int32_t>, int> count;
    for (const Ids& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++count[{word[i], word[i + 1]}];
    const auto best =
        std::ranges::max_element(count, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == count.end() || best->second < 2) break;
    const auto [left, right] = best->first;  // the first of the most frequent: the smallest
    const std::string joined =
        tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    auto result = static_cast<std::int32_t>(std::ranges::find(tokens.begin() + 1, tokens.end(), joined) -
                                            tokens.begin());
    if (result == std::ssize(tokens)) tokens.push_back(joined);
    const Bpe::Merge merge{left, right, result};
    if (done.insert({left, right}).second) merges.push_back(merge);
    for (Ids& word : words) word = merged(word, merge);
  }
  return merges;
}

// Applies merges in the order of ranks, each in one pass over the word while it is the lowest rank present.
Ids naive_encode(const std::vector<Bpe::Merge>& merges, Ids ids) {
  while (true) {
    const auto present =
        std::ranges::find_if(merges, [&](const Bpe::Merge& m) { return merged(ids, m) != ids; });
    if (present == merges.end()) return ids;
    ids = merged(ids, *present);
  }
}

std::string random_text(std::uint32_t seed, std::size_t words, int letters) {
  std::mt19937 random(seed);
  std::string text;
  for (std::size_t w = 0; w < words; ++w) {
    for (std::size_t n = 1 + random() % 9; n > 0; --n)
      text += static_cast<char>('a' + random() % static_cast<unsigned>(letters));
    text += random() % 8 ? " " : ".\n";
  }
  return text;
}

TEST(Bpe, TrainsAsTheNaiveAlgorithmDoes) {
  // Few letters give many ties, overlaps such as aaaa, and tokens with two spellings.
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const std::string text = random_text(seed, 300, 1 + static_cast<int>(seed) % 4);
    const std::int32_t vocab = 257 + 40 * static_cast<std::int32_t>(1 + seed % 5);
    EXPECT_EQ(train_bpe(text, vocab).merges, naive_merges(text, vocab)) << seed;
  }
}

TEST(Bpe, EncodesAsTheNaiveAlgorithmDoes) {
  const std::string corpus = random_text(1, 2000, 5);
  const std::vector<Bpe::Merge> merges = train_bpe(corpus, 600).merges;
  const Tokenizer tokenizer = Tokenizer::train(corpus, 600);
  const Tokenizer bytes = Tokenizer::train("", Tokenizer::kMinVocab);
  const std::string text = random_text(99, 400, 6);
  Ids expected;
  for (const Ids& word : byte_words(text, bytes)) {
    const Ids ids = naive_encode(merges, word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
  EXPECT_LT(expected.size(), text.size() * 2 / 3);
}

// The result was worked out by hand. The words are "abc", " abc" twice and " ab". "ab" occurs 4 times; then "
// ab" and "abc" 3 times each, and the blank has the smaller id; then " abc" twice.
TEST(Bpe, SmallExample) {
  const Tokenizer tokenizer = Tokenizer::train("abc abc abc ab", 1000);
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.token(257), "ab");
  EXPECT_EQ(tokenizer.token(258), "Ġab");
  EXPECT_EQ(tokenizer.token(259), "Ġabc");
  EXPECT_EQ(tokenizer.token(0), kEndOfText);
  EXPECT_EQ(tokenizer.token(1), "!");  // the first printable byte
  EXPECT_EQ(tokenizer.end_of_text(), 0);
}

TEST(Bpe, StopsAtTheSizeAskedFor) {
  const std::string text = random_text(5, 3000, 20);
  EXPECT_EQ(Tokenizer::train(text, 700).vocab_size(), 700);
  EXPECT_EQ(Tokenizer::train(text, 257).vocab_size(), 257);
  EXPECT_ERROR(Tokenizer::train(text, 256), Code::kBadValue, "model.vocab", "256");
}

// Broken UTF-8 comes back as what it was read as.
TEST(Bpe, AnyTextComesBack) {
  const Tokenizer tokenizer = Tokenizer::train(random_text(2, 2000, 12), 800);
  std::mt19937 random(17);
  for (int i = 0; i < 300; ++i) {
    std::string text(random() % 400, '\0');
    for (char& c : text) c = static_cast<char>(random() % 3 ? 'a' + random() % 12 : random());
    if (i % 5 == 0) text.insert(random() % (text.size() + 1), kEndOfText);
    const std::string valid = lossy_utf8(text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), valid);
    EXPECT_EQ(tokenizer.encode(text), tokenizer.encode(valid));
  }
  EXPECT_TRUE(tokenizer.encode("").empty());
}

// A model may generate the first bytes of a character and stop.
TEST(Bpe, APartOfACharacterDecodesToTheReplacementCharacter) {
  const Tokenizer tokenizer = Tokenizer::train("", Tokenizer::kMinVocab);
  Ids ids = tokenizer.encode("a€");
  ASSERT_EQ(ids.size(), 4U);
  ids.pop_back();
  EXPECT_EQ(tokenizer.decode(ids), "a\uFFFD");
}

TEST(Bpe, EndOfTextIsOneTokenAndCutsWords) {
  const Tokenizer tokenizer = Tokenizer::train("ab<|endoftext|>ab<|endoftext|>ab", 400);
  ASSERT_EQ(tokenizer.vocab_size(), Tokenizer::kMinVocab + 1);
  const std::int32_t ab = Tokenizer::kMinVocab;
  EXPECT_THAT(tokenizer.encode("<|endoftext|>ab<|endoftext|><|endoftext|>ab"),
              ::testing::ElementsAre(0, ab, 0, 0, ab));
  EXPECT_EQ(tokenizer.encode("<|endoftext|").size(), 12u);  // not the token
}

TEST(Bpe, AnIdBeyondTheVocabularyDecodesToTheReplacementCharacter) {
  const Tokenizer tokenizer = Tokenizer::train("", 257);
  EXPECT_EQ(tokenizer.decode(Ids{257, -1}), "\uFFFD\uFFFD");
}

// For one word of 300,000 letters, quadratic work would take minutes.
TEST(Bpe, LongWordsAreNotQuadratic) {
  const std::string text(300000, 'a');
  const Tokenizer tokenizer = Tokenizer::train(text, 270);
  const Ids ids = tokenizer.encode(text);
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_LT(ids.size(), 100u);
}

}  // namespace
}  // namespace hyperrun
