#include "runtime/model/text/tokenizer.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/spelling.h"

namespace hyperrun {

namespace {

using Symbols = TokenizerParts::Symbols;

// True for a token with a blank behind another character. It would be lost if words were cut at blanks.
bool crosses_words(std::string_view token) {
  return token.find(' ', std::min(token.find_first_not_of(' '), token.size())) != std::string_view::npos;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  const auto is_token = [&](std::int32_t id) { return id >= 0 && id < vocab_size(); };
  HR_CHECK(is_token(end_of_text()) && std::ranges::all_of(parts_.byte_ids, is_token));
  // If two special tokens begin at one place, the longer one counts.
  std::ranges::stable_sort(parts_.special, std::greater{}, [&](std::int32_t id) { return token(id).size(); });

  ranks_.reserve(merges().size());
  std::int32_t rank = 0;
  for (const Merge& merge : merges())
    ranks_.try_emplace(pair_key(merge.left, merge.right), Ranked{rank++, merge.result});
  if (parts_.symbols == Symbols::kCharacters) {
    const bool crosses =
        std::ranges::any_of(merges(), [&](const Merge& m) { return crosses_words(token(m.result)); });
    parts_.words = crosses ? Words::kOne : Words::kBlanks;
  } else if (!parts_.whole_words) {
    return;
  }
  std::vector<bool> left_out(parts_.tokens.size());
  for (const std::int32_t id : parts_.special) left_out[static_cast<std::size_t>(id)] = true;
  for (const std::int32_t id : parts_.byte_ids) left_out[static_cast<std::size_t>(id)] = true;
  for (std::int32_t id = 0; id < vocab_size(); ++id)
    if (!left_out[static_cast<std::size_t>(id)]) ids_.emplace(token(id), id);
}

namespace {

// The ids of a word while they are merged: a linked list in an array.
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

  std::vector<std::int32_t> ids_;  // -1: merged into the entry before
  std::vector<std::int32_t> next_, prev_;
};

}  // namespace

std::vector<std::int32_t> Tokenizer::symbols_of(std::string_view word) const {
  std::vector<std::int32_t> ids;
  ids.reserve(word.size());
  const auto add_bytes = [&](std::string_view bytes) {
    for (const char c : bytes) ids.push_back(parts_.byte_ids[static_cast<unsigned char>(c)]);
  };
  if (parts_.symbols == Symbols::kBytes) {
    add_bytes(word);
    return ids;
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view symbol = word.substr(at, char_at(word, at).bytes);
    at += symbol.size();
    if (const auto it = ids_.find(std::string(symbol)); it != ids_.end())
      ids.push_back(it->second);
    else
      add_bytes(symbol);
  }
  return ids;
}

void Tokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& out) const {
  if (parts_.whole_words)
    if (const auto it = ids_.find(std::string(word)); it != ids_.end()) return out.push_back(it->second);
  MergeList list(symbols_of(word));

  // An entry of the heap: lowest rank first, then leftmost. It is outdated if its place has another pair now.
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
  if (text.empty()) return;
  std::string with_blank;
  if (parts_.symbols == Symbols::kCharacters) text = with_blank = " " + without_marks(text);
  std::unordered_map<std::string_view, Ids> seen;
  for_each_word(parts_.words, text, [&](std::string_view word) {
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
  for (const std::int32_t id : parts_.special)
    if (text.substr(at).starts_with(token(id))) return id;
  return -1;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::array<bool, 256> begins_special{};
  for (const std::int32_t id : parts_.special)
    begins_special[static_cast<unsigned char>(token(id)[0])] = true;

  std::vector<std::int32_t> out;
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!begins_special[static_cast<unsigned char>(text[at])]) continue;
    const std::int32_t id = special_at(text, at);
    if (id < 0) continue;
    encode_plain(text.substr(plain, at - plain), out);
    out.push_back(id);
    plain = at + token(id).size();
    at = plain - 1;
  }
  encode_plain(text.substr(plain), out);
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  if (!ids.empty() && ids.front() == begin_of_text() && begin_of_text() >= 0) ids = ids.subspan(1);
  std::string text;
  for (const std::int32_t id : ids)
    text += id >= 0 && id < vocab_size() ? std::string_view(token(id)) : std::string_view("\xEF\xBF\xBD");
  if (parts_.symbols == Symbols::kCharacters && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace hyperrun
