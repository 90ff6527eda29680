// What the first round of a search leaves to the second: of groups of strategies, by
// PieceTable::key_of_group(), what was sharded and lowered. Tables of any threads share it. Where that would
// be too much, groups whose strategies have greater bounds are done without; which these are, does not depend
// on the order in which groups come, so that a search finds the same on any number of cores.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/plan/piece_table.h"

namespace hyperrun {

class KeptStructures {
 public:
  // Of all that is kept; they take some half a kilobyte each, with the graphs that they were made of.
  explicit KeptStructures(std::size_t most_instrs = 2'000'000) : most_instrs_(most_instrs) {}

  // Of a group, once. `least`: of the bounds of its strategies, ns; of infinity nothing is kept.
  void keep(const std::string& group, double least, std::shared_ptr<PieceTable::Structures> structures);
  // Behind the last that is kept. What has no bound of at most so many ns is not wanted.
  void drop_beyond(double bound);
  // Each is taken once; null where there is none.
  std::shared_ptr<PieceTable::Structures> take(const std::string& group);

 private:
  using Rank = std::pair<double, std::string>;  // the least bound and the group

  std::size_t most_instrs_, instrs_ = 0;
  std::mutex mutex_;
  std::map<Rank, std::shared_ptr<PieceTable::Structures>> kept_;
  std::unordered_map<std::string, double> least_;                 // by group
  Rank first_left_{std::numeric_limits<double>::infinity(), ""};  // nor are those behind it kept
};

}  // namespace hyperrun
