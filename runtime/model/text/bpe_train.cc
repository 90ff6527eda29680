// Each word is kept once with its count. Each pair knows the words in which it occurs, so a merge touches
// only those. A heap finds the next pair; its outdated entries are recognised by their count.
#include "runtime/model/text/bpe_train.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/byte_map.h"
#include "runtime/model/text/lossy_utf8.h"
#include "runtime/model/text/pre_tokenizer.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/model/text/tokenizer_json.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kMinPairCount = 2;  // a pair that occurs once saves nothing elsewhere

struct Word {
  std::vector<std::int32_t> ids;
  std::int64_t count = 0;
};

// The first tokens: kEndOfText, then the bytes in the order of their printable forms.
std::vector<std::string> initial_tokens() {
  std::array<int, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), 0);
  std::ranges::sort(bytes, {}, [](int byte) { return kByteToChar[static_cast<std::size_t>(byte)]; });
  std::vector<std::string> tokens{std::string(kEndOfText)};
  for (const int byte : bytes) tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

class BpeTrainer {
 public:
  BpeTrainer() : tokens_(initial_tokens()) {
    for (std::size_t id = 1; id < tokens_.size(); ++id)
      id_of_.emplace(tokens_[id], static_cast<std::int32_t>(id));
  }

  void add_text(std::string_view text);
  TrainedBpe run(std::int32_t vocab_size);

 private:
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::int32_t> words;  // all words with the pair, some twice, and some that lost it
  };
  struct Candidate {
    std::int64_t count;
    std::uint64_t key;
    bool operator<(const Candidate& o) const {  // the heap's top is the largest
      return count != o.count ? count < o.count : key > o.key;
    }
  };

  void count_word(std::string_view text);
  void change(std::int32_t left, std::int32_t right, std::int64_t by, std::int32_t word);
  bool next_pair(std::uint64_t& key);
  std::int32_t id_of_merge(std::int32_t left, std::int32_t right);
  void merge(std::int32_t left, std::int32_t right, std::int32_t result);
  void merge_in_word(std::int32_t index, std::int32_t left, std::int32_t right, std::int32_t result);

  std::unique_ptr<PreTokenizer> words_of_ = gpt2_words(/*raw=*/true);
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t> id_of_;
  std::vector<Bpe::Merge> merges_;
  std::unordered_set<std::uint64_t> merged_;  // the pairs in merges_
  std::vector<Word> words_;
  std::unordered_map<std::string_view, std::int32_t> word_of_;
  std::unordered_map<std::uint64_t, Pair> pairs_;
  std::vector<std::uint64_t> grown_;  // pairs whose count rose in the current merge
  std::priority_queue<Candidate> heap_;
};

void BpeTrainer::count_word(std::string_view text) {
  const auto [it, is_new] = word_of_.try_emplace(text, static_cast<std::int32_t>(words_.size()));
  if (is_new) {
    Word& word = words_.emplace_back();
    for (const char c : text) word.ids.push_back(id_of_.at(std::string(1, c)));
  }
  ++words_[static_cast<std::size_t>(it->second)].count;
}

void BpeTrainer::add_text(std::string_view text) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(kEndOfText);
    words_of_->cut({text.substr(0, end)}, [&](TextPiece word) { count_word(word.text); });
    if (end != std::string_view::npos) text.remove_prefix(end + kEndOfText.size());
  }
}

void BpeTrainer::change(std::int32_t left, std::int32_t right, std::int64_t by, std::int32_t word) {
  const std::uint64_t key = pair_key(left, right);
  if (by < 0) {
    // The pair that is being merged has left the table already.
    if (const auto it = pairs_.find(key); it != pairs_.end()) it->second.count += by;
    return;
  }
  Pair& pair = pairs_[key];
  pair.count += by;
  if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
  grown_.push_back(key);
}

// Finds the most frequent pair, among equals the smallest. An entry with too small a count is dropped,
// because a newer entry is in the heap. One with too large a count is put back with the true count.
bool BpeTrainer::next_pair(std::uint64_t& key) {
  while (!heap_.empty()) {
    const Candidate top = heap_.top();
    heap_.pop();
    const auto it = pairs_.find(top.key);
    const std::int64_t count = it == pairs_.end() ? 0 : it->second.count;
    if (count == top.count && count >= kMinPairCount) return key = top.key, true;
    if (count >= kMinPairCount && count < top.count) heap_.push({count, top.key});
  }
  return false;
}

// The token of a merge. Two pairs that spell the same bytes ("ab" "c" and "a" "bc") have one token.
std::int32_t BpeTrainer::id_of_merge(std::int32_t left, std::int32_t right) {
  std::string bytes = tokens_[static_cast<std::size_t>(left)] + tokens_[static_cast<std::size_t>(right)];
  const auto [it, is_new] = id_of_.try_emplace(bytes, static_cast<std::int32_t>(tokens_.size()));
  if (is_new) tokens_.push_back(std::move(bytes));
  return it->second;
}

void BpeTrainer::merge_in_word(std::int32_t index, std::int32_t left, std::int32_t right,
                               std::int32_t result) {
  Word& word = words_[static_cast<std::size_t>(index)];
  const std::vector<std::int32_t>& ids = word.ids;
  std::vector<std::int32_t> merged;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != left || i + 1 == ids.size() || ids[i + 1] != right) {
      merged.push_back(ids[i]);
      continue;
    }
    if (!merged.empty()) {
      change(merged.back(), left, -word.count, index);
      change(merged.back(), result, word.count, index);
    }
    if (i + 2 < ids.size()) {
      change(right, ids[i + 2], -word.count, index);
      change(result, ids[i + 2], word.count, index);
    }
    merged.push_back(result);
    ++i;
  }
  word.ids = std::move(merged);
}

void BpeTrainer::merge(std::int32_t left, std::int32_t right, std::int32_t result) {
  const Pair pair = std::move(pairs_.extract(pair_key(left, right)).mapped());
  grown_.clear();
  for (const std::int32_t word : pair.words) merge_in_word(word, left, right, result);
  std::ranges::sort(grown_);
  grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
  for (const std::uint64_t key : grown_)
    if (const auto it = pairs_.find(key); it != pairs_.end()) heap_.push({it->second.count, key});
}

TrainedBpe BpeTrainer::run(std::int32_t vocab_size) {
  for (std::size_t w = 0; w < words_.size(); ++w)
    for (std::size_t i = 0; i + 1 < words_[w].ids.size(); ++i)
      change(words_[w].ids[i], words_[w].ids[i + 1], words_[w].count, static_cast<std::int32_t>(w));
  for (const auto& [key, pair] : pairs_) heap_.push({pair.count, key});

  std::uint64_t key = 0;
  while (std::ssize(tokens_) < vocab_size && next_pair(key)) {
    const auto left = static_cast<std::int32_t>(key >> 32), right = static_cast<std::int32_t>(key);
    const std::int32_t result = id_of_merge(left, right);
    merge(left, right, result);
    // A token with two spellings can bring back a pair that was merged before; its rank stays.
    if (merged_.insert(key).second) merges_.push_back({left, right, result});
  }
  return {std::move(tokens_), std::move(merges_)};
}

}  // namespace

TrainedBpe train_bpe(std::string_view text, std::int32_t vocab_size) {
  BpeTrainer trainer;
  trainer.add_text(text);
  return trainer.run(vocab_size);
}

Tokenizer Tokenizer::train(std::string_view text, std::int32_t vocab_size) {
  if (vocab_size < kMinVocab)
    throw Error(Code::kBadValue,
                fmt::format("a byte-level tokenizer of {} tokens has no room for the 256 bytes and {}",
                            vocab_size, kEndOfText))
        .at("model.vocab")
        .legal(fmt::format("{} or more", kMinVocab));
  const std::string valid = is_utf8(text) ? "" : lossy_utf8(text);
  const TrainedBpe trained = train_bpe(valid.empty() ? text : valid, vocab_size);
  return {byte_level_json(trained), "the trained tokenizer"};
}

}  // namespace hyperrun
