#include "runtime/plan/kept_structures.h"

#include <iterator>

namespace hyperrun {

void KeptStructures::keep(const std::string& group, double least,
                          std::shared_ptr<PieceTable::Structures> structures) {
  const std::lock_guard lock(mutex_);
  const Rank rank{least, group};
  if (rank >= first_left_) return;
  instrs_ += PieceTable::instrs_of(*structures);
  least_[group] = least;
  kept_.emplace(rank, std::move(structures));
  while (instrs_ > most_instrs_) {
    const auto last = std::prev(kept_.end());
    instrs_ -= PieceTable::instrs_of(*last->second);
    first_left_ = last->first;
    kept_.erase(last);
  }
}

std::shared_ptr<PieceTable::Structures> KeptStructures::take(const std::string& group) {
  const std::lock_guard lock(mutex_);
  const auto least = least_.find(group);
  if (least == least_.end()) return nullptr;
  const auto kept = kept_.extract({least->second, group});
  return kept.empty() ? nullptr : kept.mapped();
}

}  // namespace hyperrun
