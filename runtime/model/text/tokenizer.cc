#include "runtime/model/text/tokenizer.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/model/text/pretokenize.h"

namespace hyperrun {

Tokenizer::Tokenizer(std::vector<std::string> tokens, std::vector<Merge> merges,
                     std::vector<std::int32_t> special)
    : tokens_(std::move(tokens)), merges_(std::move(merges)), special_(std::move(special)) {
  byte_id_.fill(-1);
  for (std::int32_t id = 0; id < vocab_size(); ++id) {
    const std::string& token = tokens_[static_cast<std::size_t>(id)];
    const bool is_special = std::ranges::find(special_, id) != special_.end();
    if (is_special && token == kEndOfText) end_of_text_ = id;
    if (!is_special && token.size() == 1) byte_id_[static_cast<unsigned char>(token[0])] = id;
  }
  HR_CHECK(end_of_text_ >= 0 && std::ranges::find(byte_id_, -1) == byte_id_.end());
  ranks_.reserve(merges_.size());
  std::int32_t rank = 0;
  for (const Merge& merge : merges_)
    ranks_.try_emplace(pair_key(merge.left, merge.right), Ranked{rank++, merge.result});
  // Of two special tokens that begin at one place the longer counts.
  std::ranges::stable_sort(special_, [&](std::int32_t a, std::int32_t b) {
    return tokens_[static_cast<std::size_t>(a)].size() > tokens_[static_cast<std::size_t>(b)].size();
  });
}

namespace {

// The ids of a word while they are merged: a list in an array, holes are jumped over.
class MergeList {
 public:
  explicit MergeList(std::vector<std::int32_t> ids)
      : ids_(std::move(ids)), next_(ids_.size()), prev_(ids_.size()) {
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      next_[i] = static_cast<std::int32_t>(i) + 1;
      prev_[i] = static_cast<std::int32_t>(i) - 1;
    }
  }

  std::int32_t next(std::int32_t i) const { return next_[at(i)]; }
  std::int32_t prev(std::int32_t i) const { return prev_[at(i)]; }
  bool is_end(std::int32_t i) const { return i == static_cast<std::int32_t>(ids_.size()); }

  // The pair that begins at i; i must be followed by another.
  std::uint64_t pair(std::int32_t i) const { return pair_key(ids_[at(i)], ids_[at(next(i))]); }
  bool has_pair(std::int32_t i) const { return i >= 0 && ids_[at(i)] >= 0 && !is_end(next(i)); }

  void merge(std::int32_t i, std::int32_t result) {
    const std::int32_t gone = next(i);
    ids_[at(i)] = result;
    ids_[at(gone)] = -1;
    next_[at(i)] = next(gone);
    if (!is_end(next(i))) prev_[at(next(i))] = i;
  }

  void append_to(std::vector<std::int32_t>& out) const {
    for (const std::int32_t id : ids_)
      if (id >= 0) out.push_back(id);
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

  std::vector<std::int32_t> ids_;  // -1: merged into the one before
  std::vector<std::int32_t> next_, prev_;
};

}  // namespace

void Tokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& out) const {
  std::vector<std::int32_t> bytes;
  bytes.reserve(word.size());
  for (const char c : word) bytes.push_back(byte_id_[static_cast<unsigned char>(c)]);
  MergeList list(std::move(bytes));

  // Lowest rank first, of equals the leftmost. An entry is outdated when its place has another pair now.
  struct Entry {
    std::int32_t rank, place, result;
    std::uint64_t pair;
    bool operator<(const Entry& o) const { return rank != o.rank ? rank > o.rank : place > o.place; }
  };
  std::priority_queue<Entry> heap;
  const auto consider = [&](std::int32_t i) {
    if (!list.has_pair(i)) return;
    const auto it = ranks_.find(list.pair(i));
    if (it != ranks_.end()) heap.push({it->second.rank, i, it->second.result, it->first});
  };
  for (std::int32_t i = 0; !list.is_end(i); ++i) consider(i);
  while (!heap.empty()) {
    const Entry top = heap.top();
    heap.pop();
    if (!list.has_pair(top.place) || list.pair(top.place) != top.pair) continue;
    list.merge(top.place, top.result);
    consider(list.prev(top.place));
    consider(top.place);
  }
  list.append_to(out);
}

void Tokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  struct Ids {
    std::size_t begin, count;  // in `out`, where the word was first encoded
  };
  std::unordered_map<std::string_view, Ids> seen;
  for_each_word(text, [&](std::string_view word) {
    const auto [it, is_new] = seen.try_emplace(word, Ids{out.size(), 0});
    Ids& ids = it->second;
    if (is_new) {
      encode_word(word, out);
      ids.count = out.size() - ids.begin;
      return;
    }
    const std::size_t end = out.size();
    out.resize(end + ids.count);
    std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(ids.begin), ids.count,
                out.begin() + static_cast<std::ptrdiff_t>(end));
  });
}

std::int32_t Tokenizer::special_at(std::string_view text, std::size_t at) const {
  for (const std::int32_t id : special_)
    if (text.substr(at).starts_with(tokens_[static_cast<std::size_t>(id)])) return id;
  return -1;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::array<bool, 256> begins_special{};
  for (const std::int32_t id : special_)
    begins_special[static_cast<unsigned char>(tokens_[static_cast<std::size_t>(id)][0])] = true;

  std::vector<std::int32_t> out;
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!begins_special[static_cast<unsigned char>(text[at])]) continue;
    const std::int32_t id = special_at(text, at);
    if (id < 0) continue;
    encode_plain(text.substr(plain, at - plain), out);
    out.push_back(id);
    plain = at + tokens_[static_cast<std::size_t>(id)].size();
    at = plain - 1;
  }
  encode_plain(text.substr(plain), out);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids)
    text += id >= 0 && id < vocab_size() ? std::string_view(tokens_[static_cast<std::size_t>(id)])
                                         : std::string_view("\xEF\xBF\xBD");
  return text;
}

}  // namespace hyperrun
