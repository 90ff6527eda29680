#include "runtime/plan/structure_cache.h"

#include <iterator>
#include <vector>

#include "runtime/base/error.h"

namespace hyperrun {

void StructureCache::keep(const std::string& group, double least,
                          std::shared_ptr<LayerProfileCache::Structures> structures) {
  std::vector<std::shared_ptr<LayerProfileCache::Structures>> left;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const Rank rank{least, group};
  if (rank >= first_evicted_) {
    left.push_back(std::move(structures));
    return;
  }
  const bool is_new = least_.emplace(group, least).second;
  HR_CHECK(is_new, "a group is kept once");
  instrs_ += LayerProfileCache::instr_count(*structures);
  kept_.emplace(rank, std::move(structures));
  while (instrs_ > most_instrs_) {
    const auto last = std::prev(kept_.end());
    instrs_ -= LayerProfileCache::instr_count(*last->second);
    first_evicted_ = last->first;
    left.push_back(std::move(last->second));
    kept_.erase(last);
  }
}

void StructureCache::drop_beyond(double bound) {
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const auto& k) { return k.first.first > bound; });
}

std::shared_ptr<LayerProfileCache::Structures> StructureCache::take(const std::string& group) {
  const std::lock_guard lock(mutex_);
  const auto least = least_.find(group);
  if (least == least_.end()) return nullptr;
  const auto kept = kept_.extract({least->second, group});
  return kept.empty() ? nullptr : kept.mapped();
}

}  // namespace hyperrun
