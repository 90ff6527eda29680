// A set of texts, of which the leftmost occurrence in another text is found, and of those the longest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/model/text/flat_map.h"
#include "runtime/model/text/regex.h"

namespace hyperrun {

class CharTrie {
 public:
  struct Found {
    TextRange range;
    std::int32_t value;
  };

  // Of two equal texts the first counts. `text` must not be empty.
  void add(std::string_view text, std::int32_t value);
  std::optional<Found> find(std::string_view text, std::size_t from) const;

 private:
  std::array<std::uint32_t, 256> first_{};  // nodes of the first byte; 0: none
  FlatMap<std::uint32_t> children_;         // node * 256 + byte to node
  std::vector<std::int32_t> values_{-1};    // by node; -1: no text ends there
};

}  // namespace hyperrun
