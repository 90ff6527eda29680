// The ids of the words that occurred before, since most words of a text occur again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

class WordCache {
 public:
  WordCache();

  // Appends the ids of a word: those that are kept, or else those that `encode` appends, which are kept then.
  template <class Encode>
  void append(std::string_view word, std::vector<std::int32_t>& out, const Encode& encode) {
    if (word.size() > kLongestWord) return encode(word, out);
    const std::uint64_t hash = hash_of(word);
    Entry& entry = find(word, hash);
    if (entry.bytes == word.size()) {
      const std::int32_t* const ids = ids_.data() + entry.ids;
      out.insert(out.end(), ids, ids + entry.count);
      return;
    }
    const std::size_t before = out.size();
    encode(word, out);
    keep(entry, word, hash, std::span(out).subspan(before));
  }

 private:
  static constexpr std::size_t kLongestWord = 255;                 // longer words hardly occur twice
  static constexpr std::size_t kMostWords = std::size_t{1} << 20;  // then all are forgotten

  struct Entry {
    std::uint32_t hash = 0, text = 0, ids = 0;  // the upper half of the hash; places in texts_ and ids_
    std::uint16_t bytes = 0, count = 0;         // no bytes: the entry is free
  };

  static std::uint64_t hash_of(std::string_view word);
  // The entry of a word, or the free one where it belongs.
  Entry& find(std::string_view word, std::uint64_t hash);
  void keep(Entry& entry, std::string_view word, std::uint64_t hash, std::span<const std::int32_t> ids);
  void grow();

  std::vector<Entry> entries_;
  std::size_t mask_, size_ = 0;
  std::string texts_;
  std::vector<std::int32_t> ids_;
};

}  // namespace hyperrun
