// A cache of sharded and lowered structures, which the first round of a search leaves to the second. Entries
// are groups of strategies (LayerProfileCache::key_of_group()), shared by all threads. If it grows too large,
// the groups with the highest bounds are evicted. Which ones are kept does not depend on the order of calls,
// so a search has the same result on any number of cores.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/plan/layer_profile_cache.h"

namespace hyperrun {

class StructureCache {
 public:
  // `most_instrs`: limit over all entries. An instruction with its share of the graph takes some half a
  // kilobyte.
  explicit StructureCache(std::size_t most_instrs = 2'000'000) : most_instrs_(most_instrs) {}

  // Adds a group, once. `least`: the least bound of its strategies, ns; infinity: nothing is kept.
  void keep(const std::string& group, double least,
            std::shared_ptr<LayerProfileCache::Structures> structures);
  // After the last keep(): drops groups without a bound of at most `bound` ns.
  void drop_beyond(double bound);
  // Removes and returns an entry; null if there is none.
  std::shared_ptr<LayerProfileCache::Structures> take(const std::string& group);

 private:
  using Rank = std::pair<double, std::string>;  // least bound and group

  std::size_t most_instrs_, instrs_ = 0;
  std::mutex mutex_;
  std::map<Rank, std::shared_ptr<LayerProfileCache::Structures>> kept_;
  std::unordered_map<std::string, double> least_;                    // by group
  Rank first_evicted_{std::numeric_limits<double>::infinity(), ""};  // the lowest rank that was evicted
};

}  // namespace hyperrun
