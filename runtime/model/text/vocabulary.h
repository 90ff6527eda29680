// The tokens of a tokenizer and their ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hyperrun {

class Vocabulary {
 public:
  // An id beyond the largest vocabulary that a model may have is a mistake in the file.
  static constexpr std::int32_t kMostTokens = 4194304;

  // Adds a token. False when the id is not in [0, kMostTokens), or the id or the token is there already with
  // another partner. Ids may have holes.
  bool add(std::string_view token, std::int64_t id);

  std::int32_t id_of(std::string_view token) const;  // -1: it is none
  bool has(std::int32_t id) const { return id >= 0 && id < size() && !is_hole(id); }
  const std::string& token(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size()); }  // the largest id, and 1
  std::size_t longest() const { return longest_; }                                 // bytes of a token

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  bool is_hole(std::int32_t id) const { return !used_[static_cast<std::size_t>(id)]; }

  std::vector<std::string> tokens_;
  std::vector<bool> used_;
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::size_t longest_ = 0;
};

}  // namespace hyperrun
