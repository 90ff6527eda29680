#include "runtime/model/text/vocabulary.h"

#include <algorithm>

namespace hyperrun {

bool Vocabulary::add(std::string_view token, std::int64_t id) {
  if (id < 0 || id >= kMostTokens) return false;
  const auto index = static_cast<std::size_t>(id);
  if (const std::int32_t known = id_of(token); known >= 0) return known == id;
  if (index < used_.size() && used_[index]) return false;
  if (index >= tokens_.size()) tokens_.resize(index + 1), used_.resize(index + 1);
  tokens_[index] = token;
  used_[index] = true;
  ids_.emplace(token, static_cast<std::int32_t>(id));
  longest_ = std::max(longest_, token.size());
  return true;
}

std::int32_t Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace hyperrun
