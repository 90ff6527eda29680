#include "runtime/model/text/char_trie.h"

#include <algorithm>

namespace hyperrun {
namespace {

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} * 256 + static_cast<unsigned char>(byte);
}

}  // namespace

void CharTrie::add(std::string_view text, std::int32_t value) {
  std::uint32_t node = 0;
  for (const char c : text) {
    std::uint32_t& child = node == 0 ? first_[static_cast<unsigned char>(c)] : children_[edge(node, c)];
    if (child == 0) {
      child = static_cast<std::uint32_t>(values_.size());
      values_.push_back(-1);
    }
    node = child;
  }
  if (values_[node] < 0) values_[node] = value;
}

std::optional<CharTrie::Found> CharTrie::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    std::uint32_t node = first_[static_cast<unsigned char>(text[begin])];
    if (node == 0) continue;
    std::optional<Found> longest;
    for (std::size_t end = begin + 1;; ++end) {
      if (values_[node] >= 0) longest = Found{{begin, end}, values_[node]};
      if (end == text.size()) break;
      const std::uint32_t* child = children_.find(edge(node, text[end]));
      if (child == nullptr) break;
      node = *child;
    }
    if (longest) return longest;
  }
  return {};
}

}  // namespace hyperrun
