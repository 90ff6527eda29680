// Puts work on several streams in an order: whenever a stream is free, it takes of what may begin that which
// the longest path hangs on (priority lists; Graham 1969 has how far from the best such an order can be).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/ir/program.h"

namespace hyperrun {

struct StreamTask {
  StreamKind stream = StreamKind::kCube;
  Nanos lasts{};
  Nanos urgency{};  // the longest path from its begin to the end of all
  std::vector<std::int32_t>
      after;  // tasks that end before it begins, by their numbers; each is lower than its own
};

// For each task its longest path.
void find_urgencies(std::span<StreamTask> tasks);

// The numbers of the tasks in the order in which they begin, of those that begin at once in one that is legal
// for a single thread. Of tasks that are as urgent the one with the lower number is taken.
std::vector<std::int32_t> list_schedule(std::span<const StreamTask> tasks);

// When the last task ends, if each stream takes its tasks in this order. `order`: legal, all tasks.
Nanos length_of(std::span<const StreamTask> tasks, std::span<const std::int32_t> order);

}  // namespace hyperrun
