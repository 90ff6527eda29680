#include "runtime/model/text/bpe.h"

#include <algorithm>
#include <utility>

#include "runtime/model/text/spelling.h"
#include "runtime/model/text/valid_text.h"

namespace hyperrun {

namespace {

constexpr char32_t kTable = 0x20000;    // code points whose tokens are in a table
constexpr std::size_t kShortWord = 64;  // bytes of a word that is not worth a search for a place to cut

char32_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) --at;
  return valid_char_at(text, at).code;
}

std::uint64_t character_pair(char32_t left, char32_t right) {
  return pair_key(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right));
}

}  // namespace

// The symbols of a word while they are merged: a linked list in arrays, and a heap of what can be merged.
struct Bpe::Scratch {
  // The heap's top has the lowest rank, of equals the leftmost place. An entry is outdated when its place has
  // another pair now.
  struct Entry {
    std::int32_t rank, place, left, right;
    bool operator<(const Entry& o) const { return rank != o.rank ? rank > o.rank : place > o.place; }
  };

  std::vector<std::int32_t> ids, next, previous;  // id -1: merged into the one before
  std::vector<Entry> heap;

  void link() {
    const auto count = static_cast<std::int32_t>(ids.size());
    next.resize(ids.size()), previous.resize(ids.size());
    for (std::int32_t i = 0; i < count; ++i) {
      next[static_cast<std::size_t>(i)] = i + 1;
      previous[static_cast<std::size_t>(i)] = i - 1;
    }
    heap.clear();
  }
  bool has_pair(std::int32_t i) const {
    return i >= 0 && ids[at(i)] >= 0 && next[at(i)] < static_cast<std::int32_t>(ids.size());
  }
  std::int32_t left(std::int32_t i) const { return ids[at(i)]; }
  std::int32_t right(std::int32_t i) const { return ids[at(next[at(i)])]; }
  void join(std::int32_t i, std::int32_t result) {
    const std::int32_t gone = next[at(i)], after = next[at(gone)];
    ids[at(i)] = result;
    ids[at(gone)] = -1;
    next[at(i)] = after;
    if (after < static_cast<std::int32_t>(ids.size())) previous[at(after)] = i;
  }
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
};

Bpe::Bpe(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Merge>& merges, Options options)
    : vocabulary_(std::move(vocabulary)), ranks_(merges.size()), options_(std::move(options)) {
  results_.reserve(merges.size());
  for (const Merge& merge : merges) {
    ranks_.set(merge.left, merge.right, static_cast<std::int32_t>(results_.size()));
    results_.push_back(merge.result);
  }
  find_characters();
  cuts_ = options_.prefix.empty() && options_.suffix.empty();
  if (cuts_) find_inner_pairs(merges);
}

void Bpe::find_characters() {
  characters_.assign(kTable, -1);
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
    if (!vocabulary_->has(id) || vocabulary_->token(id).empty()) continue;
    const std::string& token = vocabulary_->token(id);
    const Char c = valid_char_at(token, 0);
    if (c.bytes == token.size() && c.code < kTable) characters_[c.code] = id;
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte)
    bytes_[byte] = vocabulary_->id_of(byte_name(static_cast<unsigned char>(byte)));
}

std::int32_t Bpe::symbol(std::string_view character, bool first, bool last, std::string& spelled) const {
  const bool plain = (first || options_.prefix.empty()) && (!last || options_.suffix.empty());
  if (plain) {
    spelled.clear();
    const char32_t code = valid_char_at(character, 0).code;
    return code < kTable ? characters_[code] : vocabulary_->id_of(character);
  }
  spelled = first ? "" : options_.prefix;
  spelled += character;
  if (last) spelled += options_.suffix;
  return vocabulary_->id_of(spelled);
}

bool Bpe::add_bytes(std::string_view symbol, std::vector<std::int32_t>& out) const {
  const auto has_token = [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; };
  if (!options_.byte_fallback || !std::ranges::all_of(symbol, has_token)) return false;
  for (const char c : symbol) out.push_back(bytes_[static_cast<unsigned char>(c)]);
  return true;
}

// An unknown token is held back until a character with a token follows, or the word ends. In between bytes
// may go ahead of it, as in Hugging Face's library.
void Bpe::add_symbols(std::string_view word, std::vector<std::int32_t>& out) const {
  std::string spelled;
  bool holds_unk = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, valid_char_at(word, at).bytes);
    const bool first = at == 0, last = at + character.size() == word.size();
    at += character.size();
    const std::int32_t id = symbol(character, first, last, spelled);
    if (id >= 0) {
      if (std::exchange(holds_unk, false)) out.push_back(options_.unk);
      out.push_back(id);
      continue;
    }
    if (add_bytes(spelled.empty() ? character : std::string_view(spelled), out) || options_.unk < 0) continue;
    if (holds_unk && !options_.fuse_unk) out.push_back(options_.unk);
    holds_unk = true;
  }
  if (holds_unk) out.push_back(options_.unk);
}

void Bpe::merge(Scratch& s) const {
  const auto add = [&](std::int32_t i) {
    const std::int32_t rank = s.has_pair(i) ? ranks_.find(s.left(i), s.right(i)) : -1;
    if (rank >= 0) s.heap.push_back({rank, i, s.left(i), s.right(i)});
    return rank >= 0;
  };
  const auto consider = [&](std::int32_t i) {
    if (add(i)) std::push_heap(s.heap.begin(), s.heap.end());
  };
  s.link();
  for (std::int32_t i = 0; i < std::ssize(s.ids); ++i) add(i);
  std::make_heap(s.heap.begin(), s.heap.end());
  while (!s.heap.empty()) {
    std::pop_heap(s.heap.begin(), s.heap.end());
    const Scratch::Entry top = s.heap.back();
    s.heap.pop_back();
    if (!s.has_pair(top.place) || s.left(top.place) != top.left || s.right(top.place) != top.right) continue;
    s.join(top.place, results_[Scratch::at(top.rank)]);
    consider(s.previous[Scratch::at(top.place)]);
    consider(top.place);
  }
}

void Bpe::encode(std::string_view word, std::vector<std::int32_t>& out) const {
  if (options_.whole_words)
    if (const std::int32_t id = vocabulary_->id_of(word); id >= 0) return out.push_back(id);
  thread_local Scratch scratch;
  scratch.ids.clear();
  add_symbols(word, scratch.ids);
  merge(scratch);
  for (const std::int32_t id : scratch.ids)
    if (id >= 0) out.push_back(id);
}

// Nothing is merged between two characters when no merge has a left side that ends with the one and a right
// side that begins with the other.
void Bpe::find_inner_pairs(const std::vector<Merge>& merges) {
  for (const Merge& merge : merges) {
    const char32_t left = last_character(vocabulary_->token(merge.left));
    inner_pairs_[character_pair(left, valid_char_at(vocabulary_->token(merge.right), 0).code)] = true;
  }
}

std::size_t Bpe::first_part(std::string_view word) const {
  if (!cuts_ || word.size() <= kShortWord) return word.size();
  if (options_.whole_words && word.size() <= vocabulary_->longest()) return word.size();
  const auto is_token = [&](char32_t code) { return code < kTable && characters_[code] >= 0; };
  Char left = valid_char_at(word, 0);
  for (std::size_t at = left.bytes; at < word.size();) {
    const Char right = valid_char_at(word, at);
    if (is_token(left.code) && is_token(right.code) &&
        inner_pairs_.find(character_pair(left.code, right.code)) == nullptr)
      return at;
    left = right;
    at += right.bytes;
  }
  return word.size();
}

}  // namespace hyperrun
