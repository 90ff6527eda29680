#include "runtime/model/text/word_cache.h"

#include <cstring>
#include <utility>

namespace hyperrun {

WordCache::WordCache() : entries_(256), mask_(entries_.size() - 1) {}

// Eight bytes at a time are mixed by multiplication and shifts; words are short, so this beats hashes that
// are made for long texts.
std::uint64_t WordCache::hash_of(std::string_view word) {
  std::uint64_t hash = word.size() * 0x9E3779B97F4A7C15u;
  const auto mix = [&](std::uint64_t bits) {
    hash = (hash ^ bits) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  };
  while (word.size() >= 8) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, word.data(), 8);
    mix(bits);
    word.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, word.data(), word.size());
  mix(rest);
  return hash;
}

WordCache::Entry& WordCache::find(std::string_view word, std::uint64_t hash) {
  for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
    Entry& entry = entries_[at];
    if (entry.bytes == 0) return entry;
    if (entry.hash == hash >> 32 && entry.bytes == word.size() &&
        std::memcmp(texts_.data() + entry.text, word.data(), word.size()) == 0)
      return entry;
  }
}

void WordCache::keep(Entry& entry, std::string_view word, std::uint64_t hash,
                     std::span<const std::int32_t> ids) {
  entry = {static_cast<std::uint32_t>(hash >> 32), static_cast<std::uint32_t>(texts_.size()),
           static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(word.size()),
           static_cast<std::uint16_t>(ids.size())};
  texts_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (++size_ == kMostWords)
    *this = WordCache();
  else if (size_ * 2 > entries_.size())
    grow();
}

void WordCache::grow() {
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 4));
  mask_ = entries_.size() - 1;
  for (const Entry& entry : old)
    if (entry.bytes > 0) {
      const std::string_view word(texts_.data() + entry.text, entry.bytes);
      find(word, hash_of(word)) = entry;
    }
}

}  // namespace hyperrun
